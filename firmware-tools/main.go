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
		{"robot", "a robot made of software, that behaves as the firmware does", robot},
		{"image", "says what a firmware image is, and whether a robot would run it", image},
		{"flash", "writes firmware, assets or settings to a robot over its USB cable", flash},
		{"nvs", "reads and changes the settings in a robot's NVS partition", settings},
		{"provision", "points a robot in configuration mode at an appliance", provision},
		{"publish", "puts a firmware image into an appliance's catalogue", publish},
		{"assets", "has robots fetch fonts, wake words and faces from an appliance", assets},
		{"record", "writes a robot's session as a transcript, secrets blanked", record},
		{"hooks", "has a coding agent's hooks drive the appliance: hooks install claude", hooks},
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
