// Command manual writes what the drivers declare into the regions of docs/engines.md and
// docs/relays.md that are between two marks. It runs in the module's folder.
//
//	go run ./cmd/perch/drivers/manual          rewrites the regions
//	go run ./cmd/perch/drivers/manual -check   fails where one is out of date
//	go run ./cmd/perch/drivers/manual -sample  prints the annotated configuration with every kind
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/gateway/avatar/relay"
)

func main() {
	check := flag.Bool("check", false, "change nothing")
	sample := flag.Bool("sample", false, "print the annotated configuration")
	flag.Parse()
	if *sample {
		fmt.Print(drivers.Sample(config.Sample()))
		return
	}
	for _, region := range []struct{ page, name, text string }{
		{"docs/engines.md", "engines", engines(drivers.Kinds())},
		{"docs/engines.md", "kinds", kinds(drivers.Kinds())},
		{"docs/relays.md", "programs", programs(relay.Kinds())},
	} {
		if err := write(region.page, region.name, region.text, *check); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// write replaces a region of a page.
func write(page, name, text string, check bool) error {
	was, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+": make docs writes this -->\n", "<!-- end of "+name+" -->\n"
	before, rest, found := strings.Cut(string(was), begin)
	_, after, ended := strings.Cut(rest, end)
	is := before + begin + text + end + after
	switch {
	case !found || !ended:
		return fmt.Errorf("%s has no region %s", page, name)
	case is == string(was):
		return nil
	case check:
		return fmt.Errorf("%s is out of date; make docs writes what the drivers declare into it", page)
	}
	return os.WriteFile(page, []byte(is), 0o644)
}

// lists returns the lists of engines, and what people call the engines in them.
func lists() [][2]string {
	return [][2]string{{"speech.recognizers", "speech recognition"}, {"speech.synthesizers", "speech synthesis"}, {"brains", "agent"}}
}

// engines returns the table of the kinds by the programs and services that they are for.
func engines(all []drivers.Kind) string {
	var rows []string
	for _, k := range all {
		for _, r := range k.Runs {
			if !slices.Contains(rows, r) {
				rows = append(rows, r)
			}
		}
	}
	var b strings.Builder
	b.WriteString("| what you run |")
	for _, l := range lists() {
		fmt.Fprintf(&b, " %s (`%s`) |", l[1], l[0])
	}
	b.WriteString("\n|---|---|---|---|\n")
	for _, row := range rows {
		b.WriteString("| " + row + " |")
		for _, l := range lists() {
			var names []string
			for _, k := range all {
				if k.List == l[0] && slices.Contains(k.Runs, row) {
					names = append(names, "`"+k.Kind+"`")
				}
			}
			b.WriteString(" " + strings.Join(append(names, "|")[:max(1, len(names))], ", "))
			if len(names) > 0 {
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// kinds returns the entries and the keys of every kind.
func kinds(all []drivers.Kind) string {
	var b strings.Builder
	for _, l := range lists() {
		fmt.Fprintf(&b, "\n### `%s`\n", l[0])
		for _, k := range all {
			if k.List != l[0] {
				continue
			}
			b.WriteString("\n```yaml\n- " + strings.Join(k.Samples, "\n- ") + "\n```\n")
			if len(k.Keys) > 0 {
				b.WriteString("\n| `" + k.Kind + "` | |\n|---|---|\n")
			}
			for _, f := range k.Keys {
				fmt.Fprintf(&b, "| `%s` | %s |\n", f.Key, f.Doc)
			}
		}
	}
	return b.String() + "\n"
}

// programs returns the table of the avatar programs.
func programs(all []relay.Kind) string {
	var b strings.Builder
	b.WriteString("| `kind` | program | usually at | what it is shown |\n|---|---|---|---|\n")
	for _, k := range all {
		at := "`" + k.URL + "`"
		switch {
		case k.Finds:
			at = "looked for"
		case k.URL == "":
			at = "set `url`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, k.Title, at, strings.Join(k.Shows, ", "))
	}
	return b.String()
}
