// Package command gives the commands of Perch's programs a common form: arguments, help,
// completion and manual pages, exit codes, tables, colour on a terminal, progress bars. The
// commands themselves are cobra's.
//
// The Use line of a command lists its arguments, which are checked and completed accordingly:
// FILE, DIR and ROBOT are what they say; "claude|codex" is one of these words; any other word
// in capitals is free text; [FILE] is optional; TEXT... is one or more. The same holds for the
// value in backquotes in the usage of a flag.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Execute runs the command line args. It returns the full name of the command
// that was run, and its error.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) (name string, err error) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { Help(c.OutOrStdout(), c) })
	root.SetHelpCommand(helpCommand())
	root.SetFlagErrorFunc(flagError)
	root.SetOut(stdout)
	root.SetErr(stderr)
	prepare(root)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeFlags(root)
	}
	root.SetArgs(longFlags(root, args))
	c, err := root.ExecuteContextC(ctx)
	return c.CommandPath(), err
}

// prepare sets what follows from the Use line of a command and its subcommands.
func prepare(c *cobra.Command) {
	for _, each := range c.Commands() {
		prepare(each)
	}
	if c.HasSubCommands() && c.HasParent() {
		own := helpCommand()
		own.Hidden = true
		c.AddCommand(own)
	}
	switch {
	case c.Args != nil:
	case c.HasSubCommands() && !c.Runnable():
		c.Args, c.RunE = cobra.ArbitraryArgs, unknown
	case c.HasSubCommands():
		c.Args = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknown(c, args)
		}
	default:
		c.Args = func(c *cobra.Command, args []string) error { return checkArguments(argumentsOf(c), args) }
	}
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = completeArguments
	}
}

// helpCommand returns the help command of a program, or of a group of commands.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]...", Short: "Show how a command is used", RunE: help, Args: cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func help(c *cobra.Command, args []string) error {
	found, rest, err := c.Parent().Find(args)
	if err != nil || found.HasSubCommands() && len(rest) > 0 {
		return unknown(found, rest)
	}
	Help(c.OutOrStdout(), found)
	return nil
}

// unknown runs for a group of commands without a subcommand.
func unknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		Help(c.ErrOrStderr(), c)
		return Usagef("a command is missing")
	}
	similar := didYouMean(c, args[0])
	if similar == "" {
		similar = "; " + c.CommandPath() + " --help lists the commands"
	}
	return Usagef("unknown command %q%s", args[0], similar)
}

// didYouMean lists the commands of a group with names similar to what was typed, or else those
// of its subgroups, by their names or by the words in their SuggestFor.
func didYouMean(group *cobra.Command, typed string) string {
	group.SuggestionsMinimumDistance = 2
	similar := group.SuggestionsFor(typed)
	if len(similar) == 0 {
		for _, c := range group.Commands() {
			for _, inner := range c.Commands() {
				words := &cobra.Command{SuggestionsMinimumDistance: 2}
				for _, word := range append([]string{inner.Name()}, inner.SuggestFor...) {
					words.AddCommand(&cobra.Command{Use: word, Run: func(*cobra.Command, []string) {}})
				}
				if inner.IsAvailableCommand() && len(words.SuggestionsFor(typed)) > 0 {
					similar = append(similar, c.Name()+" "+inner.Name())
				}
			}
		}
	}
	if len(similar) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(similar, " or ") + "?"
}

// flagError makes an unknown flag a usage error, and suggests similar flags.
func flagError(c *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return Usagef("%w", err)
	}
	flags := &cobra.Command{}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: "--" + f.Name, Run: func(*cobra.Command, []string) {}})
	})
	return Usagef("%w%s", err, didYouMean(flags, "--"+missing.GetSpecifiedName()))
}

// longFlags replaces -name by --name, since flags of Go programs may be written that way.
func longFlags(root *cobra.Command, args []string) []string {
	c, _, err := root.Find(args)
	if err != nil {
		return args
	}
	c.InitDefaultHelpFlag()
	long, isValue := make([]string, 0, len(args)), false
	for i, arg := range args {
		if arg == "--" && !isValue {
			return append(long, args[i:]...)
		}
		name, _, inline := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		flag := c.Flags().Lookup(name)
		switch {
		case isValue || !strings.HasPrefix(arg, "-") || flag == nil:
			isValue = false
		default:
			arg = "--" + strings.TrimLeft(arg, "-")
			isValue = !inline && flag.NoOptDefVal == ""
		}
		long = append(long, arg)
	}
	return long
}

// Usagef returns an error for a command that was used wrongly. Its exit code is 2.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// ExitCode implements the interface of the function ExitCode.
func (usageError) ExitCode() int { return 2 }

// ExitCode returns a program's exit code: 0 for success, 1 for failure, 2 for wrong usage, or
// the result of the error's method ExitCode.
func ExitCode(err error) int {
	var coded interface{ ExitCode() int }
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.ExitCode()
	}
	return 1
}

// OneLine returns the text of an error as a single line.
func OneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, value any) error {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(w, escapeControls(text.String()))
	return err
}

// escapeControls escapes the control characters in JSON strings that encoding/json leaves
// unescaped and a terminal obeys.
func escapeControls(text string) string {
	if !strings.ContainsFunc(text, isControl) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isControl(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isControl(r rune) bool { return r >= 0x7f && r < 0xa0 }
