package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/plain"
)

// output holds the flag that selects how a command prints its result.
type output struct{ json bool }

// register adds the flag to a command.
func (o *output) register(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// print prints a value as JSON if the flag --json is set. Otherwise it calls show to print it for people.
func (o *output) print(c *cobra.Command, value any, show func(out io.Writer)) error {
	if o.json {
		return command.WriteJSON(c.OutOrStdout(), value)
	}
	show(plainOutput{c.OutOrStdout()})
	return nil
}

// plainOutput is an output that removes control characters other than newlines and tabs. Texts that other
// people wrote may contain control sequences, which a terminal would execute.
type plainOutput struct{ io.Writer }

// Write implements io.Writer. Removed characters count as written.
func (o plainOutput) Write(p []byte) (int, error) {
	if _, err := io.WriteString(o.Writer, plainLines(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// plainLines applies plain.Text to a text, but keeps newlines and tabs.
func plainLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for i, column := range strings.Split(strings.TrimSuffix(line, "\n"), "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(plain.Text(column))
		}
		if strings.HasSuffix(line, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
