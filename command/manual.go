package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Manual returns the commands' part of a program's manual page, in roff. Only tests call it,
// so no program contains it.
func Manual(root *cobra.Command) string {
	var b strings.Builder
	for _, c := range Visible(root) {
		manual(&b, c)
	}
	return b.String()
}

func manual(b *strings.Builder, c *cobra.Command) {
	if c.HasSubCommands() {
		for _, each := range Visible(c) {
			manual(b, each)
		}
		return
	}
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	fmt.Fprintf(b, ".SS %s\n.B %s\n", roff(name), roff(c.CommandPath()))
	for _, a := range argumentsOf(c) {
		fmt.Fprintf(b, ".I %s\n", roff(a))
	}
	if c.HasLocalFlags() {
		b.WriteString("[options]\n")
	}
	fmt.Fprintf(b, ".PP\n%s.\n", roff(c.Short))
	if c.Long != "" {
		fmt.Fprintf(b, "%s\n", roff(strings.Join(strings.Fields(c.Long), " ")))
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, does := pflag.UnquoteUsage(f)
		if value == "" {
			fmt.Fprintf(b, ".TP\n.B \\-\\-%s\n%s\n", roff(f.Name), roff(does))
			return
		}
		for _, sign := range []string{": ", "; "} { // the value's name precedes it already
			does = strings.TrimPrefix(does, value+sign)
		}
		fmt.Fprintf(b, ".TP\n.BI \"\\-\\-%s \" \"%s\"\n%s\n", roff(f.Name), roff(value), roff(does))
	})
	for _, line := range Examples(c) {
		fmt.Fprintf(b, ".PP\n.EX\n.RS\n%s\n.RE\n.EE\n", roff(line))
	}
}

// roff escapes a text for roff.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}
