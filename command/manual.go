package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Manual returns the part of a program's manual page that describes the commands, in roff. Only
// tests call Manual, so the linker leaves it out of the programs.
func Manual(root *cobra.Command) string {
	var b strings.Builder
	for _, c := range Visible(root) {
		writeManual(&b, c)
	}
	return b.String()
}

// writeManual writes the description of a command, or of each command of a group.
func writeManual(b *strings.Builder, c *cobra.Command) {
	if c.HasSubCommands() {
		for _, sub := range Visible(c) {
			writeManual(b, sub)
		}
		return
	}
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	fmt.Fprintf(b, ".SS %s\n.B %s\n", escapeRoff(name), escapeRoff(c.CommandPath()))
	for _, a := range argumentsOf(c) {
		fmt.Fprintf(b, ".I %s\n", escapeRoff(a))
	}
	if c.HasLocalFlags() {
		b.WriteString("[options]\n")
	}
	fmt.Fprintf(b, ".PP\n%s.\n", escapeRoff(c.Short))
	if c.Long != "" {
		fmt.Fprintf(b, "%s\n", escapeRoff(strings.Join(strings.Fields(c.Long), " ")))
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, description := pflag.UnquoteUsage(f)
		if value == "" {
			fmt.Fprintf(b, ".TP\n.B \\-\\-%s\n%s\n", escapeRoff(f.Name), escapeRoff(description))
			return
		}
		for _, separator := range []string{": ", "; "} { // the page shows the value's name before the description
			description = strings.TrimPrefix(description, value+separator)
		}
		fmt.Fprintf(b, ".TP\n.BI \"\\-\\-%s \" \"%s\"\n%s\n", escapeRoff(f.Name), escapeRoff(value), escapeRoff(description))
	})
	for _, line := range Examples(c) {
		fmt.Fprintf(b, ".PP\n.EX\n.RS\n%s\n.RE\n.EE\n", escapeRoff(line))
	}
}

// escapeRoff returns a roff text that is printed as s.
func escapeRoff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}
