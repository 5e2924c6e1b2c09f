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

// argumentKind returns an argument of a Use line without its brackets and dots: "[FILE]" is of
// the kind "FILE".
func argumentKind(argument string) string { return strings.Trim(argument, "[].") }

// choices returns the words of a kind such as "claude|codex", or nil for a kind that is not such a
// list of words in lower case.
func choices(kind string) []string {
	if !strings.Contains(kind, "|") || kind != strings.ToLower(kind) {
		return nil
	}
	return strings.Split(kind, "|")
}

// checkArguments returns a usage error if the arguments of a command line do not fit
// the command's Use line: their number is wrong, or one is not among the words of its kind.
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

// completeArguments returns the completions of the argument that follows args. They depend on the
// argument's kind in the Use line.
func completeArguments(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if listed := argumentsOf(c); len(args) < len(listed) {
		return completions(c.Context(), argumentKind(listed[len(args)]))
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// registerFlagCompletions adds completions for the values of all flags of a command and its
// subcommands. They depend on the kind in backquotes in the flag's usage.
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

// completions returns the possible values of an argument of the given kind. For files and folders it
// returns a directive to the shell instead, which completes these itself.
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

// listRobots returns the IDs of the appliance's robots, and their names unless they contain a space.
// It asks the appliance that perch robot list asks: the appliance named by PERCH_URL, or else this
// machine's. listRobots returns nil after an error, or if there is no answer within two seconds.
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
