// Command perch is a self-hosted voice server for Stack-chan and other Xiaozhi
// robots, and the commands that talk to it.
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

// commands returns the program's root command with all others below it.
func commands() *cobra.Command {
	root := &cobra.Command{
		Use:   "perch",
		Short: "Run a voice server for Stack-chan and other Xiaozhi robots, and look after it",
		Long: `status, health, backup, restore and the commands of robot, memory, notification, character and relay talk to the running appliance over
its socket, or over the network: --url URL --token-file FILE, or PERCH_URL and PERCH_TOKEN. So do set and unset. Where none runs, backup, restore, set and
unset work in its data directory (--data DIR).`,
		Example: `perch serve
			perch robot list
			perch robot say kitchen "dinner is ready"`,
	}
	robot := &cobra.Command{Use: "robot", Short: "List, name, adopt and forget robots, and have them speak"}
	robot.AddCommand(listCommand(), showCommand(), sayCommand(), adoptCommand(), tokenCommand(), forgetCommand(), renameCommand(),
		setCommand(), gestureCommand(), rebootCommand())
	memory := &cobra.Command{Use: "memory", Short: "List, add, show and forget what the agent remembers"}
	memory.AddCommand(memoriesCommand(), addMemoryCommand(), memoryCommand(), forgetMemoryCommand(), memoryStatsCommand())
	diary := &cobra.Command{Use: "diary", Short: "List what characters did, and check that nobody has changed it"}
	diary.AddCommand(diaryListCommand(), diaryVerifyCommand())
	skill := &cobra.Command{Use: "skill", Short: "List, check and sign what characters know how to do"}
	skill.AddCommand(skillsCommand(), checkSkillCommand(), signSkillCommand())
	notification := &cobra.Command{Use: "notification", Short: "Send notifications, and list those that are open"}
	notification.AddCommand(notificationsCommand(), sendCommand())
	root.AddCommand(serveCommand(), checkConfigCommand(), setKeyCommand(), unsetKeyCommand(), doctorCommand(), statusCommand(), healthCommand(), openCommand(), robot, memory, diary,
		skill, notification, characterCommand(), relayCommand(), backupCommand(), restoreCommand(), command.Completion("perch"), versionCommand(),
		brokerCommand(), speakerCommand())
	return root
}

// brokerCommand runs the embedded MQTT broker. Only perch serve starts it.
func brokerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    broker.Command,
		Hidden: true,
		RunE:   func(c *cobra.Command, _ []string) error { return broker.RunProcess(os.Stdin, c.ErrOrStderr()) },
	}
}

// speakerCommand runs espeak-ng. Only perch itself starts it.
func speakerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    espeak.ServeCommand,
		Hidden: true,
		RunE:   func(c *cobra.Command, _ []string) error { return espeak.Serve(c.InOrStdin(), os.Stdout) },
	}
}

// run runs a command line and returns its exit code: 0 done, 1 failed, 2 wrong usage or configuration.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == "--version" { // as other programs have it
		args = []string{"version"}
	}
	name, err := command.Execute(ctx, commands(), args, stdout, stderr)
	if err != nil {
		printError(stderr, name, err)
	}
	return command.ExitCode(err)
}

// printError prints why a command has failed: one line, or one for each fault of a configuration.
// In systemd's journal each line has the priority of an error.
func printError(stderr io.Writer, name string, err error) {
	text := plain.Text(command.OneLine(err))
	var wrong config.Faults
	if errors.As(err, &wrong) {
		text = plainLines(err.Error())
	}
	if f, is := stderr.(*os.File); is && toJournal(os.Getenv("JOURNAL_STREAM"), f) {
		for line := range strings.Lines(text) {
			fmt.Fprintf(stderr, "<3>%s: %s\n", name, strings.TrimSuffix(line, "\n"))
		}
		return
	}
	fmt.Fprintf(stderr, "%s: %s\n", name, text)
}
