// Command perch is a self-hosted voice server for Stack-chan and other Xiaozhi robots: perch serve runs
// it. The other commands, such as perch robot list, connect to a running server or inspect its data.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"perch/cmd/perch/config"
	"perch/command"
	"perch/gateway/broker"
	"perch/plain"
	"perch/voice/espeak"
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
		Use:   "perch",
		Short: "Run a voice server for Stack-chan and other Xiaozhi robots, and look after it",
		Long: `status, health, open, https, backup, restore, set, unset and the commands of robot, memory, notification, character, relay and diary connect to the
running appliance through its socket, or through the network: --url URL --token-file FILE, or PERCH_URL and PERCH_TOKEN. If no appliance runs, backup, restore, set
and unset work on the data directory (--data DIR).`,
		Example: `perch serve
			perch robot list
			perch robot say kitchen "dinner is ready"`,
	}
	robot := &cobra.Command{Use: "robot", Short: "List, name, adopt and forget robots, and make them speak"}
	robot.AddCommand(robotListCommand(), robotShowCommand(), robotSayCommand(), robotAdoptCommand(), robotAddCommand(), robotTokenCommand(), robotForgetCommand(), robotRenameCommand(),
		robotSetCommand(), robotGestureCommand(), robotPlayCommand(), robotRebootCommand())
	memory := &cobra.Command{Use: "memory", Short: "List, add, show and forget what the agent remembers"}
	memory.AddCommand(memoryListCommand(), memoryAddCommand(), memoryShowCommand(), memoryForgetCommand(), memoryStatsCommand())
	diary := &cobra.Command{Use: "diary", Short: "List what characters did, and check that nobody has changed it"}
	diary.AddCommand(diaryListCommand(), diaryVerifyCommand())
	skill := &cobra.Command{Use: "skill", Short: "List, get, check and sign the skills of characters"}
	skill.AddCommand(skillListCommand(), skillGetCommand(), skillCheckCommand(), skillSignCommand())
	notification := &cobra.Command{Use: "notification", Short: "Send notifications, and list the open ones"}
	notification.AddCommand(notificationListCommand(), notificationSendCommand())
	root.AddCommand(serveCommand(), checkConfigCommand(), setCommand(), unsetCommand(), doctorCommand(), statusCommand(), healthCommand(), openCommand(), httpsCommand(), robot, memory, diary,
		skill, notification, characterCommand(), relayCommand(), backupCommand(), restoreCommand(), command.Completion("perch"), versionCommand(),
		brokerCommand(), espeakCommand())
	return root
}

// brokerCommand returns the hidden command that runs the embedded MQTT broker. Perch itself starts it.
func brokerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    broker.Command,
		Hidden: true,
		RunE:   func(c *cobra.Command, _ []string) error { return broker.RunProcess(os.Stdin, c.ErrOrStderr()) },
	}
}

// espeakCommand returns the hidden command that runs espeak-ng. Perch itself starts it.
func espeakCommand() *cobra.Command {
	return &cobra.Command{
		Use:    espeak.ServeCommand,
		Hidden: true,
		RunE:   func(c *cobra.Command, _ []string) error { return espeak.Serve(c.InOrStdin(), os.Stdout) },
	}
}

// run runs a command line and returns the exit code: 0 for success, 1 for failure, 2 for wrong usage or
// a configuration with faults.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == "--version" { // many programs have this flag
		args = []string{"version"}
	}
	name, err := command.Execute(ctx, commands(), args, stdout, stderr)
	if err != nil {
		printError(stderr, name, err)
	}
	return command.ExitCode(err)
}

// printError prints the error of a command on one line, or the faults of a configuration on one line
// each. In systemd's journal the lines have the priority of errors.
func printError(stderr io.Writer, name string, err error) {
	text := plain.Text(command.OneLine(err))
	var faults config.Faults
	if errors.As(err, &faults) {
		text = plainLines(err.Error())
	}
	if f, ok := stderr.(*os.File); ok && isJournal(os.Getenv("JOURNAL_STREAM"), f) {
		for line := range strings.Lines(text) {
			fmt.Fprintf(stderr, "<3>%s: %s\n", name, strings.TrimSuffix(line, "\n"))
		}
		return
	}
	fmt.Fprintf(stderr, "%s: %s\n", name, text)
}
