// Command manual writes the descriptions of the drivers into the generated regions of
// docs/engines.md and docs/relays.md. It must be run in the root folder of the module.
//
//	go run ./cmd/perch/drivers/manual          rewrites the regions
//	go run ./cmd/perch/drivers/manual -check   fails if a region is out of date
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
	check := flag.Bool("check", false, "only check whether the regions are up to date")
	sample := flag.Bool("sample", false, "print the annotated configuration")
	flag.Parse()
	if *sample {
		fmt.Print(drivers.Sample(config.Sample()))
		return
	}
	for _, region := range []struct{ page, name, text string }{
		{"docs/engines.md", "engines", engineTable(drivers.Kinds())},
		{"docs/engines.md", "kinds", kindSections(drivers.Kinds())},
		{"docs/relays.md", "programs", programTable(relay.Kinds())},
	} {
		if err := writeRegion(region.page, region.name, region.text, *check); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// writeRegion replaces the text of a region of a page. With check it changes nothing, and returns an
// error if the text would change.
func writeRegion(page, name, text string, check bool) error {
	content, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+": make docs writes this -->\n", "<!-- end of "+name+" -->\n"
	before, rest, begun := strings.Cut(string(content), begin)
	_, after, ended := strings.Cut(rest, end)
	updated := before + begin + text + end + after
	switch {
	case !begun || !ended:
		return fmt.Errorf("%s has no region %s", page, name)
	case updated == string(content):
		return nil
	case check:
		return fmt.Errorf("%s is out of date; make docs updates it", page)
	}
	return os.WriteFile(page, []byte(updated), 0o644)
}

// lists returns the configuration key of each list of engines, and what the engines in the list do.
func lists() [][2]string {
	return [][2]string{{"speech.recognizers", "speech recognition"}, {"speech.synthesizers", "speech synthesis"}, {"brains", "agent"}}
}

// engineTable returns a table of programs and services, with the kinds of engines that use each of
// them.
func engineTable(all []drivers.Kind) string {
	var programs []string
	for _, k := range all {
		for _, program := range k.Runs {
			if !slices.Contains(programs, program) {
				programs = append(programs, program)
			}
		}
	}
	var b strings.Builder
	b.WriteString("| what you run |")
	for _, l := range lists() {
		fmt.Fprintf(&b, " %s (`%s`) |", l[1], l[0])
	}
	b.WriteString("\n|---|---|---|---|\n")
	for _, program := range programs {
		b.WriteString("| " + program + " |")
		for _, l := range lists() {
			var names []string
			for _, k := range all {
				if k.List == l[0] && slices.Contains(k.Runs, program) {
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

// kindSections returns a section for each list, with sample entries and the keys of its kinds.
func kindSections(all []drivers.Kind) string {
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

// programTable returns the table of the avatar programs.
func programTable(all []relay.Kind) string {
	var b strings.Builder
	b.WriteString("| `kind` | program | usually at | what it is shown |\n|---|---|---|---|\n")
	for _, k := range all {
		address := "`" + k.URL + "`"
		switch {
		case k.Finds:
			address = "looked for"
		case k.URL == "":
			address = "set `url`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, k.Title, address, strings.Join(k.Shows, ", "))
	}
	return b.String()
}
