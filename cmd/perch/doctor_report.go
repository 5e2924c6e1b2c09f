package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// finding is one line of the doctor's: something that works, or a cause and
// its cure.
type finding struct {
	ok         bool
	part, note string
	warn       bool // it works, and should be mended all the same
}

// mark is what a line begins with.
func (f finding) mark() string {
	switch {
	case !f.ok:
		return "FAIL"
	case f.warn:
		return "WARN"
	}
	return "ok"
}

// rank has faults before warnings, and those before what works.
func (f finding) rank() int { return slices.Index([]string{"FAIL", "WARN", "ok"}, f.mark()) }

// show prints findings, faults first, and reports how many of them are.
func show(out io.Writer, findings []finding) (faults int) {
	sorted := slices.SortedStableFunc(slices.Values(findings), func(a, b finding) int { return cmp.Compare(a.rank(), b.rank()) })
	wide := 0
	for _, f := range sorted {
		wide = max(wide, utf8.RuneCountInString(f.part))
		if !f.ok {
			faults++
		}
	}
	switch {
	case faults == 0:
		fmt.Fprintln(out, "Everything works:")
	case faults == 1:
		fmt.Fprintln(out, "1 fault, with its cure:")
	default:
		fmt.Fprintf(out, "%d faults, each with its cure:\n", faults)
	}
	for i, f := range sorted {
		if i == faults && faults > 0 {
			fmt.Fprint(out, "\nThe rest works:\n")
		}
		fmt.Fprintf(out, "%-4s  %-*s  %s\n", f.mark(), wide, f.part, cmp.Or(oneSentence(f.note), "works"))
	}
	return faults
}

// oneSentence is a note in one line, where it was made of several.
func oneSentence(note string) string {
	var parts []string
	for line := range strings.Lines(note) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, strings.TrimSuffix(line, ";"))
		}
	}
	return strings.Join(parts, "; ")
}

// numbered is a number of things in words.
func numbered(n int, one, many string) string {
	switch n {
	case 0:
		return "no " + one
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// report prints the findings and returns how many of them are faults.
func (d *examination) report(out io.Writer) (faults int) { return show(out, d.findings) }

// showSecrets prints the generated passwords.
func (d *examination) showSecrets(out io.Writer) {
	c, data := d.config, d.data
	fmt.Fprint(out, "\nSecrets:\n")
	names := []string{"admin-token"}
	if c.MQTT.Generated() {
		names = append(names, mqttSecret)
		fmt.Fprintf(out, "      mqtt-user: %s\n", cmp.Or(c.MQTT.User, mqttUser))
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(data, name))
		if err != nil {
			fmt.Fprintf(out, "      %s cannot be read: %v\n", name, err)
			continue
		}
		fmt.Fprintf(out, "      %s: %s\n", name, strings.TrimSpace(string(text)))
	}
}
