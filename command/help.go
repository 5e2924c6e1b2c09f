package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Help writes a command's usage, description, subcommands, options and examples. The options of a group
// of commands are left out if its only option is --help.
func Help(w io.Writer, c *cobra.Command) {
	arguments, commands, showOptions := argumentsOf(c), Visible(c), false
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { showOptions = showOptions || f.Name != "help" })
	switch {
	case len(commands) > 0 && showOptions: // the group can also be run as a command
		arguments = []string{"[COMMAND]"}
	case len(commands) > 0:
		arguments = []string{"COMMAND"}
	default:
		showOptions = true
	}
	fmt.Fprintf(w, "usage: %s\n", strings.Join(append(append([]string{c.CommandPath()}, arguments...), "[options]"), " "))
	fmt.Fprintf(w, "\n%s.\n", c.Short)
	if c.Long != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.Long))
	}
	if len(commands) > 0 {
		fmt.Fprintln(w, "\nCommands:")
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, sub := range commands {
			fmt.Fprintf(table, "  %s\t%s\n", sub.Name(), sub.Short)
		}
		_ = table.Flush() // fails only if the output is closed
		fmt.Fprintf(w, "\n%s COMMAND --help shows the options of a command. Exit codes: 0 done, 1 failed, 2 wrong usage.\n", c.CommandPath())
	}
	if showOptions {
		fmt.Fprintf(w, "\nOptions:\n%s", c.LocalFlags().FlagUsagesWrapped(ScreenOf(w, os.Getenv).Width))
	}
	if examples := Examples(c); len(examples) > 0 {
		fmt.Fprintf(w, "\nExamples:\n  %s\n", strings.Join(examples, "\n  "))
	}
}

// Visible returns the commands of a group except help and the hidden ones.
func Visible(group *cobra.Command) (commands []*cobra.Command) {
	for _, c := range group.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			commands = append(commands, c)
		}
	}
	return commands
}

// Examples returns the command lines in a command's field Example.
func Examples(c *cobra.Command) (lines []string) {
	for line := range strings.Lines(c.Example) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
