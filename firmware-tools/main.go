// Command perch-tools is for people who build, flash and test robots.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// command is one verb of perch-tools.
type command struct {
	name, does string
	run        func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

func commands() []command {
	return []command{
		{"robot", "is a robot made of software, that behaves as the firmware does", robot},
		{"image", "says what a firmware image is, and whether a robot would run it", image},
		{"flash", "writes firmware, assets or settings to a robot over its USB cable", flash},
		{"nvs", "reads and changes the settings in a robot's NVS partition; without --set, --ota or --delete it only reads", settings},
		{"provision", "points a robot in configuration mode at an appliance", provision},
		{"publish", "puts a firmware image into an appliance's catalogue", publish},
		{"assets", "has robots fetch fonts, wake words and faces from an appliance", assets},
		{"record", "writes a robot's session as a transcript, secrets blanked", record},
		{"hooks", "has a coding agent's hooks drive the appliance: hooks install claude, or codex; hooks remove ends that", hooks},
		{"completion", "writes what has a shell complete these commands: " + strings.ReplaceAll(shellNames, "|", ", "), completion},
	}
}

// errUsage is wrapped by errors that are the caller's: exit code 2.
var errUsage = errors.New("wrong usage")

// run returns the exit code: 0 done, 1 failed, 2 wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return 2
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return exitCode(c.run(ctx, args[1:], stdout, stderr), c.name, stderr)
		}
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(stdout)
		return 0
	}
	fmt.Fprintf(stderr, "perch-tools: unknown command %q\n", args[0])
	usage(stderr)
	return 2
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: perch-tools COMMAND [options]; COMMAND --help tells the options")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.does)
	}
}

// helped tells how a command is used. What it returns is no failure.
func helped(s *flag.FlagSet, stdout io.Writer, arguments string) error {
	s.SetOutput(stdout)
	fmt.Fprintln(stdout, strings.Join(strings.Fields("usage: "+s.Name()+" "+arguments+" [options]"), " "))
	s.PrintDefaults()
	return helpError{arguments, s}
}

// shellCommands are the commands as they answer to --help.
func shellCommands(ctx context.Context) ([]shellCommand, error) {
	var all []shellCommand
	for _, c := range commands() {
		verbs := [][2]string{{"", c.does}}
		if c.name == "hooks" {
			verbs = hooksVerbs() // the only one that is of two words
		}
		for _, verb := range verbs {
			words := strings.Fields(verb[0] + " --help")
			described, err := describe(strings.TrimSpace(c.name+" "+verb[0]), verb[1], c.run(ctx, words, io.Discard, io.Discard))
			if err != nil {
				return nil, err
			}
			all = append(all, described)
		}
	}
	return all, nil
}

// completion writes a script for a shell.
func completion(ctx context.Context, args []string, stdout, _ io.Writer) error {
	s := flag.NewFlagSet("perch-tools completion", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	shells, err := parseAround(s, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return helped(s, stdout, shellNames)
	case err == nil && len(shells) != 1:
		err = fmt.Errorf("it takes one shell, not %d", len(shells))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	all, err := shellCommands(ctx)
	if err != nil {
		return err
	}
	if err := writeCompletion(stdout, shells[0], "perch-tools", all); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return nil
}

// exitCode prints an error as one line, and says what it means to a script.
func exitCode(err error, name string, stderr io.Writer) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "perch-tools %s: %s\n", name, oneLine(err))
		return 2
	}
	fmt.Fprintf(stderr, "perch-tools %s: %s\n", name, oneLine(err))
	return 1
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
