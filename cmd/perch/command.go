package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"perch/cmd/perch/appliance"
	"perch/cmd/perch/config"
)

// command is one of the verbs.
type command struct {
	name, arguments, does string
	run                   func(ctx context.Context, args []string, out io.Writer) error
}

// usageError is a command used wrongly.
type usageError string

func (e usageError) Error() string { return string(e) }

// run carries out a command line and returns the exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	group := ""
	if len(args) > 0 && args[0] == "robot" {
		group, args = "robot ", args[1:]
	}
	if len(args) == 0 || args[0] == "help" || args[0] == "--help" || args[0] == "-h" {
		if group == "" {
			usage(out)
		} else {
			listCommands(out, group)
			fmt.Fprintln(out, "\nperch robot list, say, adopt, token and forget are perch devices, say, adopt, token and forget.")
		}
		if len(args) == 0 {
			return exitUsage
		}
		return exitDone
	}
	if group != "" {
		args = append([]string{robotCommand(args[0])}, args[1:]...)
	}
	if args[0] == appliance.BrokerCommand {
		if err := appliance.RunBroker(os.Stdin, errs); err != nil {
			fmt.Fprintf(errs, "perch: %v\n", err)
			return exitFailed
		}
		return exitDone
	}
	for _, c := range commands() {
		if c.name != args[0] {
			continue
		}
		err := c.run(ctx, args[1:], out)
		if err == nil {
			return exitDone
		}
		var help helpError
		if errors.As(err, &help) {
			fmt.Fprintf(out, "perch %s %s\n  %s\n", c.name, c.arguments, c.does)
			help.options.SetOutput(out)
			help.options.PrintDefaults()
			return exitDone
		}
		printError(errs, err)
		return exitCode(err)
	}
	fmt.Fprintf(errs, "perch: there is no command %q; perch %s lists them\n", args[0], cmp.Or(strings.TrimSpace(group), "help"))
	return exitUsage
}

// robotCommand is the command that follows perch robot by its own name. Some of
// them have a shorter one.
func robotCommand(name string) string {
	switch name {
	case "list":
		return "devices"
	case "say", "adopt", "token", "forget":
		return name
	}
	return "robot " + name
}

// printError prints why a command has failed. In the journal, each line of it has
// the priority of an error.
func printError(errs io.Writer, err error) {
	if f, is := errs.(*os.File); is && toJournal(os.Getenv("JOURNAL_STREAM"), f) {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(errs, "<3>perch: %s\n", strings.TrimSuffix(line, "\n"))
		}
		return
	}
	fmt.Fprintf(errs, "perch: %v\n", err)
}

func exitCode(err error) int {
	var wrongUse usageError
	var wrongConfig config.Faults
	if errors.As(err, &wrongUse) || errors.As(err, &wrongConfig) {
		return exitUsage
	}
	return exitFailed
}

func usage(out io.Writer) {
	fmt.Fprintln(out, "perch is the appliance that Stack-chan and other Xiaozhi robots find in the house.")
	fmt.Fprintln(out)
	listCommands(out, "")
	fmt.Fprintln(out)
	fmt.Fprintln(out, "perch COMMAND --help tells the options of one; man perch tells more.")
	fmt.Fprintln(out, "devices, say, notify, adopt, token, forget, robot, backup and restore speak to the running appliance over its socket,")
	fmt.Fprintln(out, "or by --url URL --token-file FILE (PERCH_URL, PERCH_TOKEN). Where none runs, backup and restore work in")
	fmt.Fprintln(out, "the data directory (--data DIR).")
}

// listCommands lists those that begin with a word, or all.
func listCommands(out io.Writer, group string) {
	for _, c := range commands() {
		if !strings.HasPrefix(c.name, group) {
			continue
		}
		fmt.Fprintf(out, "  perch %-13s %s\n", c.name, c.does)
		if c.arguments != "" {
			fmt.Fprintf(out, "  %-19s   %s\n", "", c.arguments)
		}
	}
}
