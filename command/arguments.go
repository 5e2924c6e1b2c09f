package command

import (
	"context"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// argumentsOf returns the arguments in a command's Use line.
func argumentsOf(c *cobra.Command) []string { return strings.Fields(c.Use)[1:] }

// bare returns an argument of a Use line without brackets and dots.
func bare(argument string) string { return strings.Trim(argument, "[].") }

// choices returns the words that an argument may be, if its kind lists them.
func choices(kind string) []string {
	if !strings.Contains(kind, "|") || kind != strings.ToLower(kind) {
		return nil
	}
	return strings.Split(kind, "|")
}

// checkArguments checks the arguments of a command line against the Use line.
func checkArguments(kinds, args []string) error {
	least, most := 0, len(kinds)
	for _, kind := range kinds {
		if !strings.HasPrefix(kind, "[") {
			least++
		}
		if strings.HasSuffix(kind, "...") {
			most = len(args)
		}
	}
	switch n := len(args); {
	case least <= n && n <= max(least, most):
	case len(kinds) == 0:
		return Usagef("unexpected %q: it takes no arguments", args[0])
	case len(kinds) == 1 && len(choices(bare(kinds[0]))) == 0:
		noun, _, _ := strings.Cut(bare(kinds[0]), ".")
		return Usagef("it takes one %s, not %d", strings.ToLower(noun), n)
	default:
		return Usagef("it takes %s, not %d arguments", strings.Join(kinds, " "), n)
	}
	for i, kind := range kinds[:min(len(kinds), len(args))] {
		if words := choices(bare(kind)); len(words) > 0 && !slices.Contains(words, args[i]) {
			return Usagef("%q is not one of %s", args[i], strings.Join(words, ", "))
		}
	}
	return nil
}

// completeArguments completes arguments by the Use line.
func completeArguments(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if kinds := argumentsOf(c); len(args) < len(kinds) {
		return complete(c.Context(), bare(kinds[len(args)]))
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeFlags completes every flag's value by the kind in its usage.
func completeFlags(c *cobra.Command) {
	for _, each := range c.Commands() {
		completeFlags(each)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		kind, _ := pflag.UnquoteUsage(f)
		// The only error is that the flag has a completion already.
		_ = c.RegisterFlagCompletionFunc(f.Name, func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return complete(c.Context(), kind)
		})
	})
}

// complete returns the possible values of a kind of argument.
func complete(ctx context.Context, kind string) ([]string, cobra.ShellCompDirective) {
	switch {
	case strings.HasPrefix(kind, "ROBOT"):
		return knownRobots(ctx), cobra.ShellCompDirectiveNoFileComp
	case kind == "DIR":
		return nil, cobra.ShellCompDirectiveFilterDirs
	case strings.HasPrefix(kind, "FILE"):
		return nil, cobra.ShellCompDirectiveDefault
	}
	return choices(kind), cobra.ShellCompDirectiveNoFileComp
}

// robotLine matches the id of a robot, or its name, in the output of perch robot list.
// Names of several words are omitted.
var robotLine = regexp.MustCompile(`(?m)^([0-9a-f]{12}) |^ *called (\S+)$`)

// knownRobots returns the ids and names of the robots of the appliance on this machine, or
// nil without an appliance.
func knownRobots(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	listed, err := exec.CommandContext(ctx, "perch", "robot", "list").Output()
	if err != nil {
		return nil
	}
	var robots []string
	for _, found := range robotLine.FindAllStringSubmatch(string(listed), -1) {
		robots = append(robots, found[1]+found[2])
	}
	return robots
}
