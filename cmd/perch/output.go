package main

import (
	"io"

	"github.com/spf13/cobra"

	"perch/command"
)

// output is how a command prints its result.
type output struct{ json bool }

// register gives a command its flags.
func (o *output) register(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// print prints a value as JSON, or as people read it.
func (o *output) print(c *cobra.Command, value any, show func(out io.Writer)) error {
	if o.json {
		return command.WriteJSON(c.OutOrStdout(), value)
	}
	show(c.OutOrStdout())
	return nil
}
