// Command perch-tools simulates, flashes, provisions and records robots, publishes the files
// that robots download, and connects coding agents to an appliance.
//
// An appliance is a machine that runs Perch. Its bootstrap URL is the address where robots check
// in when they start. Provisioning a robot stores this URL in the robot.
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// commands returns the root command with all subcommands.
func commands() *cobra.Command {
	root := &cobra.Command{
		Use:   "perch-tools",
		Short: "Flash, provision and simulate robots for Perch",
	}
	robot := robotCommand("robot", &robotFlags{})
	robot.Short = "Simulate, set up, flash and record robots"
	robot.AddCommand(flashCommand(), provisionCommand(), nvsCommand(), recordCommand())
	firmware := &cobra.Command{Use: "firmware", Short: "Check and publish the files that robots download"}
	firmware.AddCommand(imageCommand(), publishCommand(), assetsCommand())
	root.AddCommand(robot, firmware, hooksCommand(), command.Completion("perch-tools"))
	return root
}

// run executes the command line and returns the exit code: 0 for success, 1 for a failure,
// 2 for wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	name, err := command.Execute(ctx, commands(), args, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", name, command.OneLine(err))
	}
	return command.ExitCode(err)
}
