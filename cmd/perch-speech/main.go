// Command perch-speech recognizes and synthesizes speech on this machine with neural models. It is a server of the
// Wyoming protocol for Perch, Home Assistant and other clients: perch-speech serve runs it. The commands under
// perch-speech models list, download, check and remove models.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/plain"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// commands returns the root command, which contains all other commands.
func commands() *cobra.Command {
	root := &cobra.Command{
		Use:   "perch-speech",
		Short: "Understand and speak with models on this machine, for Perch and Home Assistant",
		Example: `perch-speech models list
			perch-speech models get en_US-joe-medium
			perch-speech serve`,
	}
	group := &cobra.Command{Use: "models", Short: "List, get, check and remove models"}
	group.AddCommand(listCommand(), getCommand(), checkCommand(), removeCommand())
	root.AddCommand(serveCommand(), group, command.Completion("perch-speech"), enginesCommand())
	root.Version = version
	return root
}

// run runs a command line and returns the exit code: 0 for success, 1 for failure, 2 for wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	name, err := command.Execute(ctx, commands(), args, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", name, plain.Text(command.OneLine(err)))
	}
	return command.ExitCode(err)
}
