// Package command gives the commands of Perch's programs a common form: arguments, help,
// completion and manual pages, exit codes, tables, colour on a terminal, progress bars. The
// commands themselves are values of the library cobra.
//
// The Use line of a command lists its arguments, which are checked and completed by their kinds:
// FILE is a file, DIR is a folder, ROBOT is the ID or name of a robot, "claude|codex" is one of
// these words, and any other word in capitals is free text. [FILE] is an optional argument, and
// TEXT... stands for one or more arguments. The word in backquotes in the usage of a flag is the
// kind of the flag's value.
package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Execute runs the command line args. It returns the full name of the command that it ran, such
// as "perch robot list", and the command's error. If the command succeeds although its output
// could not be written to stdout, Execute returns the write error.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) (name string, err error) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { Help(c.OutOrStdout(), c) })
	root.SetHelpCommand(helpCommand())
	root.SetFlagErrorFunc(flagError)
	out := &output{Writer: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	prepareCommand(root)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		registerFlagCompletions(root)
	}
	root.SetArgs(longFlags(root, args))
	c, err := root.ExecuteContextC(ctx)
	return c.CommandPath(), cmp.Or(err, out.firstError())
}

// output is the output of a command. It remembers the first write error, because commands do not check
// the errors of printing. Its methods are safe for concurrent use if those of the Writer are.
type output struct {
	io.Writer
	mu  sync.Mutex
	err error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (n int, err error) {
	if n, err = o.Writer.Write(p); err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.err = cmp.Or(o.err, err)
	}
	return n, err
}

// firstError returns the first write error, or nil.
func (o *output) firstError() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// prepareCommand makes a command and its subcommands check and complete their arguments according to
// their Use lines. It gives each group of commands below the root a hidden help command.
func prepareCommand(c *cobra.Command) {
	for _, sub := range c.Commands() {
		prepareCommand(sub)
	}
	if c.HasSubCommands() && c.HasParent() {
		groupHelp := helpCommand()
		groupHelp.Hidden = true
		c.AddCommand(groupHelp)
	}
	switch {
	case c.Args != nil:
	case c.HasSubCommands() && !c.Runnable():
		c.Args, c.RunE = cobra.ArbitraryArgs, unknownCommand
	case c.HasSubCommands():
		c.Args = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(c, args)
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
		Use: "help [COMMAND]...", Short: "Show how a command is used", RunE: runHelp, Args: cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// runHelp runs the help command c: it prints the help of the command that args names.
func runHelp(c *cobra.Command, args []string) error {
	found, rest, err := c.Parent().Find(args)
	if err != nil || found.HasSubCommands() && len(rest) > 0 {
		return unknownCommand(found, rest)
	}
	Help(c.OutOrStdout(), found)
	return nil
}

// unknownCommand returns the usage error for a group of commands that was called without a subcommand
// or with an unknown one. Without a subcommand, it also writes the group's help to stderr.
func unknownCommand(c *cobra.Command, args []string) error {
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

// didYouMean returns the end of an error message, which suggests the commands of a group that have a
// name or SuggestFor similar to typed. If the group has no such command, didYouMean suggests such
// commands of its subgroups. It returns "" if the subgroups have none either.
func didYouMean(group *cobra.Command, typed string) string {
	group.SuggestionsMinimumDistance = 2
	similar := group.SuggestionsFor(typed)
	if len(similar) == 0 {
		for _, c := range group.Commands() {
			for _, inner := range c.Commands() {
				if inner.IsAvailableCommand() && DidYouMean(typed, append([]string{inner.Name()}, inner.SuggestFor...)) != "" {
					similar = append(similar, c.Name()+" "+inner.Name())
				}
			}
		}
	}
	return suggestion(similar)
}

// DidYouMean returns the end of an error message, which suggests the names that are similar to
// typed, or "" if no name is similar.
func DidYouMean(typed string, names []string) string {
	group := &cobra.Command{SuggestionsMinimumDistance: 2}
	oneWord := strings.NewReplacer(" ", "\u00a0") // the name of a command of cobra ends at a space
	for _, name := range names {
		group.AddCommand(&cobra.Command{Use: oneWord.Replace(name), Run: func(*cobra.Command, []string) {}})
	}
	return strings.ReplaceAll(suggestion(group.SuggestionsFor(oneWord.Replace(typed))), "\u00a0", " ")
}

// suggestion returns the end of an error message, which suggests the similar names, or "" if similar is
// empty.
func suggestion(similar []string) string {
	if len(similar) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(similar, " or ") + "?"
}

// flagError turns an error about a flag into a usage error. For an unknown flag it suggests
// similar flags.
func flagError(c *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return Usagef("%w", err)
	}
	var flags []string
	c.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
	return Usagef("%w%s", err, DidYouMean("--"+missing.GetSpecifiedName(), flags))
}

// longFlags returns args with -name replaced by --name for the flags of the command that args run:
// Perch's programs accept both forms, as Go's package flag does.
func longFlags(root *cobra.Command, args []string) []string {
	c, _, err := root.Find(args)
	if err != nil {
		return args
	}
	c.InitDefaultHelpFlag()
	long, isValue := make([]string, 0, len(args)), false // isValue: the next argument is the value of a flag
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

// Usagef returns an error for a command that was used wrongly. The program then exits with code 2.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// usageError is a mistake in the command line.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// ExitCode returns 2, the exit code for wrong usage.
func (usageError) ExitCode() int { return 2 }

// ExitCode returns the exit code of a program whose command returned err: 0 if err is nil, the
// result of err's method ExitCode if it has one (2 for wrong usage), and 1 for other errors.
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

// escapeControls escapes the control characters that encoding/json does not escape, because a
// terminal would interpret them.
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

// isControl reports whether r is DEL or a control character of the C1 set.
func isControl(r rune) bool { return r >= 0x7f && r < 0xa0 }
