// Command perch is a self-hosted voice server for Stack-chan and other Xiaozhi
// robots, and the commands that talk to it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func commands() []command {
	return []command{
		{"serve", "", "runs the appliance", serve},
		{"check-config", "[FILE]", "says every fault of a configuration", checkConfig},
		{"doctor", "", "says what works and, for what does not, cause and cure", diagnose},
		{"devices", "", "lists the robots", devices},
		{"say", "ROBOT TEXT", "has a robot speak", say},
		{"notify", "TEXT", "has people told something, at once or when a robot next connects", notify},
		{"adopt", "ROBOT|CODE", "makes a robot yours, also one that waits", adopt},
		{"token", "ROBOT", "tells the address and the token of a robot that is adopted, for a client that has fields for them", showToken},
		{"forget", "ROBOT|--strangers", "forgets a robot, or all that nobody has adopted", forget},
		{"robot show", "ROBOT", "shows what is known of a robot", showRobot},
		{"robot rename", "ROBOT NAME", "gives a robot the name by which every command knows it; an empty one takes it away", renameRobot},
		{"robot set", "ROBOT KEY=VALUE", "sets a robot's own name, persona, voice, brain or language; an empty value takes it away", setRobot},
		{"backup", "FILE", "writes what the appliance knows into one file, while it runs; - is standard output", backup},
		{"restore", "FILE", "checks a backup and puts it in the place of what the appliance knows, at its next start", restore},
		{"completion", shellNames, "writes what has a shell complete these commands", completion},
		{"version", "", "says which program this is", printVersion},
	}
}

func main() {
	ctx, stop := notifyContext()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// notifyContext ends with the signals that ask a program to stop.
func notifyContext() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}
