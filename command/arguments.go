package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// argumentsOf returns the arguments that a command's Use line lists.
func argumentsOf(c *cobra.Command) []string { return strings.Fields(c.Use)[1:] }

// argumentKind returns the kind of an argument in a Use line, which is the argument without brackets
// and dots: "FILE" for "[FILE]".
func argumentKind(argument string) string { return strings.Trim(argument, "[].") }

// choices returns the words of a kind such as "claude|codex". It returns nil if the kind contains no "|"
// or has letters in upper case.
func choices(kind string) []string {
	if !strings.Contains(kind, "|") || kind != strings.ToLower(kind) {
		return nil
	}
	return strings.Split(kind, "|")
}

// checkArguments returns a usage error if args has too few or too many arguments for a Use line, or if an
// argument is not among the words of its kind. listed are the arguments in the Use line.
func checkArguments(listed, args []string) error {
	minArgs, maxArgs := 0, len(listed)
	for _, argument := range listed {
		if !strings.HasPrefix(argument, "[") {
			minArgs++
		}
		if strings.HasSuffix(argument, "...") {
			maxArgs = len(args)
		}
	}
	switch n := len(args); {
	case minArgs <= n && n <= max(minArgs, maxArgs):
	case len(listed) == 0:
		return Usagef("unexpected argument %q: the command takes none", args[0])
	default:
		given := "1 argument was"
		if n != 1 {
			given = fmt.Sprintf("%d arguments were", n)
		}
		return Usagef("it takes %s, but %s given", strings.Join(listed, " "), given)
	}
	for i, argument := range listed[:min(len(listed), len(args))] {
		if words := choices(argumentKind(argument)); len(words) > 0 && !slices.Contains(words, args[i]) {
			return Usagef("%q is not one of %s", args[i], strings.Join(words, ", "))
		}
	}
	return nil
}

// completeArguments returns the completions of the argument that follows args, according to the
// argument's kind in the Use line.
func completeArguments(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if listed := argumentsOf(c); len(args) < len(listed) {
		return completions(c.Context(), argumentKind(listed[len(args)]))
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// registerFlagCompletions adds completions for the values of all flags of a command and its
// subcommands, according to the kind in backquotes in each flag's usage.
func registerFlagCompletions(c *cobra.Command) {
	for _, sub := range c.Commands() {
		registerFlagCompletions(sub)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		kind, _ := pflag.UnquoteUsage(f)
		// The only error is that the flag has a completion already.
		_ = c.RegisterFlagCompletionFunc(f.Name, func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completions(c.Context(), kind)
		})
	})
}

// completions returns the possible values of an argument of the given kind. For a file or a folder it
// returns no values, and the directive that makes the shell complete the name.
func completions(ctx context.Context, kind string) ([]string, cobra.ShellCompDirective) {
	switch {
	case strings.HasPrefix(kind, "ROBOT"):
		return listRobots(ctx), cobra.ShellCompDirectiveNoFileComp
	case kind == "DIR":
		return nil, cobra.ShellCompDirectiveFilterDirs
	case strings.HasPrefix(kind, "FILE"):
		return nil, cobra.ShellCompDirectiveDefault
	}
	return choices(kind), cobra.ShellCompDirectiveNoFileComp
}

// listRobots returns the IDs of the appliance's robots, and the names that contain no space. It runs
// perch robot list, which asks the appliance that PERCH_URL names, or the appliance on this machine if
// PERCH_URL is not set. listRobots returns nil after an error, or if there is no answer within two seconds.
func listRobots(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	output, err := exec.CommandContext(ctx, "perch", "robot", "list", "--json").Output()
	var list struct {
		Robots []struct{ ID, Name string }
	}
	if err != nil || json.Unmarshal(output, &list) != nil {
		return nil
	}
	var robots []string
	for _, r := range list.Robots {
		robots = append(robots, r.ID)
		if r.Name != "" && !strings.Contains(r.Name, " ") {
			robots = append(robots, r.Name)
		}
	}
	return robots
}
