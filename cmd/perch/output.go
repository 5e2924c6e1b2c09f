package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/plain"
)

// output holds the flag that says how a command prints its result.
type output struct{ json bool }

// register adds the flag to a command.
func (o *output) register(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// print prints a value as JSON, or as people read it.
func (o *output) print(c *cobra.Command, value any, show func(out io.Writer)) error {
	if o.json {
		return command.WriteJSON(c.OutOrStdout(), value)
	}
	show(plainOutput{c.OutOrStdout()})
	return nil
}

// plainOutput is an output for text, lines and tabs only: an answer may hold what others have
// written, such as control sequences for the terminal.
type plainOutput struct{ io.Writer }

// Write implements io.Writer. What it leaves out counts as written.
func (o plainOutput) Write(p []byte) (int, error) {
	if _, err := io.WriteString(o.Writer, plainLines(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// plainLines is plain.Text for a text of several lines and columns.
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
