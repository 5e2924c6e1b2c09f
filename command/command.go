// Package command is how the commands of Perch's programs look and behave:
// their arguments, help, completion and manual pages, exit codes, tables and
// colour on a terminal, progress bars. The commands themselves are cobra's.
//
// The Use line of a command says what it takes, and is checked and completed
// accordingly: FILE, DIR and ROBOT are what they say; "claude|codex" is one of
// these words; any other word in capitals is free text; [FILE] may be absent;
// TEXT... is one or more. The same holds for what stands in backquotes in the
// usage of a flag.
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

// prepare gives a command, and those below it, what follows from its Use line.
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
		if c.ValidArgsFunction == nil {
			c.ValidArgsFunction = completeArguments
		}
	}
}

// helpCommand returns the command help of a program, or of a group of commands.
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

// unknown is what a group of commands does by itself.
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

// didYouMean names the commands of a group whose names are similar to what was typed, or else
// those of its groups, by their names or by the words in their SuggestFor.
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

// flagError makes a wrong flag a wrong use, and names the flags it resembles.
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

// longFlags lets -name stand for --name, as the flags of Go programs may be
// written.
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

// Usagef returns an error for a command that was used in a wrong way. Its exit
// code is 2.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// ExitCode implements what ExitCode looks for.
func (usageError) ExitCode() int { return 2 }

// ExitCode returns what a program ends with: 0 done, 1 failed, 2 wrong usage,
// or what a method ExitCode of the error says.
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

// WriteJSON writes a value as people and programs read it.
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

// escapeControls escapes the control characters of JSON that encoding/json leaves as they
// are, and that a terminal obeys. They are within strings.
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
