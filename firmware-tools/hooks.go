package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perch/command"
)

// hooksFlags are the options of the commands hooks install, hooks remove and hooks send.
type hooksFlags struct {
	address  string
	keyFile  string // file that contains the value of skins.key in the appliance's configuration; may be empty
	settings string // path of the settings file; empty for the file that the agent reads by default
	agent    string // name of the coding agent, which is sent to the appliance; empty for Claude Code
	write    bool   // write the hooks to the settings, instead of printing them
	json     bool

	url *url.URL // parsed address
	key string   // content of keyFile
}

// hooksCommand returns the command perch-tools hooks. A hook is a command that a coding agent
// runs at an event, such as the start of a session. The hooks report these events to the appliance,
// which shows the agent's state on robots and in other programs.
func hooksCommand() *cobra.Command {
	c := &cobra.Command{Use: "hooks", Short: "Connect a coding agent to the appliance with hooks"}
	c.AddCommand(hooksInstallCommand(&hooksFlags{}), hooksRemoveCommand(&hooksFlags{}), hooksSendCommand(&hooksFlags{}))
	return c
}

// hooksInstallCommand returns the command perch-tools hooks install.
func hooksInstallCommand(f *hooksFlags) *cobra.Command {
	c := &cobra.Command{
		Use:     "install " + agentNames(),
		Short:   "Print the hooks for a coding agent, or write them to its settings",
		Example: "perch-tools hooks install claude --write",
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.prepare(); err != nil {
				return err
			}
			return f.install(agentNamed(args[0]), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.register(c)
	c.Flags().StringVar(&f.settings, "settings", "", "`FILE` to write to; default: the agent's settings of this user")
	c.Flags().BoolVar(&f.write, "write", false, "merge the hooks into the settings, and write a backup")
	c.Flags().BoolVar(&f.json, "json", false, "with --write, print JSON")
	return c
}

// hooksRemoveCommand returns the command perch-tools hooks remove.
func hooksRemoveCommand(f *hooksFlags) *cobra.Command {
	c := &cobra.Command{
		Use:     "remove " + agentNames(),
		Short:   "Remove these hooks from a coding agent's settings",
		Example: "perch-tools hooks remove claude",
		RunE: func(c *cobra.Command, args []string) error {
			return f.merge(agentNamed(args[0]), nil, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&f.settings, "settings", "", "`FILE` to change; default: the agent's settings of this user")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return c
}

// hooksSendCommand returns the command perch-tools hooks send.
func hooksSendCommand(f *hooksFlags) *cobra.Command {
	c := &cobra.Command{
		Use:   "send state|permission",
		Short: "Send an agent's event to the appliance; run by the hooks",
		Args:  cobra.ArbitraryArgs, // sendHook checks the arguments, since the exit code must not be 2
		RunE: func(c *cobra.Command, args []string) error {
			err := f.prepare()
			if err == nil {
				err = sendHook(c.Context(), f, args, os.Stdin, c.OutOrStdout())
			}
			if err != nil {
				return harmless{err}
			}
			return nil
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return harmless{err} })
	f.register(c)
	c.Flags().StringVar(&f.agent, "agent", "", "`NAME` of the agent; default: Claude Code")
	return c
}

// harmless is an error that makes the program exit with 0, because a coding agent takes a
// hook's exit code 2 for a veto.
type harmless struct{ error }

// ExitCode returns 0, the exit code of the program.
func (harmless) ExitCode() int { return 0 }

// register defines the flags for the connection to the appliance.
func (f *hooksFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.address, "url", cmp.Or(os.Getenv("PERCH_URL"), localURL), "`URL` of the appliance")
	c.Flags().StringVar(&f.keyFile, "key-file", "", "`FILE` that contains the skins' key (skins.key)")
}

// prepare parses the address, and reads the skins' key. Skins are programs that show the agent's state.
// The appliance requires the key from skins and from hooks, except on loopback addresses.
func (f *hooksFlags) prepare() (err error) {
	f.url, err = url.Parse(strings.TrimSuffix(f.address, "/"))
	if err != nil || f.url.Scheme != "http" && f.url.Scheme != "https" || f.url.Host == "" || f.url.RawQuery != "" {
		return command.Usagef("--url %q is not a URL such as http://perch.local:8003", f.address)
	}
	if f.keyFile == "" {
		return nil
	}
	if f.keyFile, err = filepath.Abs(f.keyFile); err != nil {
		return fmt.Errorf("find the key: %w", err)
	}
	key, err := os.ReadFile(f.keyFile)
	if err != nil {
		return fmt.Errorf("read the skins' key: %w", err)
	}
	if f.key = strings.TrimSpace(string(key)); f.key == "" || strings.ContainsAny(f.key, " \t\r\n") {
		return fmt.Errorf("%s does not hold a key: one word, the value of skins.key", f.keyFile)
	}
	return nil
}

// install prints the hooks or, with --write, merges them into the agent's settings.
func (f *hooksFlags) install(agent codingAgent, stdout, stderr io.Writer) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the path of this program: %w", err)
	}
	block := f.block(program, agent)
	if a, err := netip.ParseAddr(f.url.Hostname()); f.key == "" && f.url.Hostname() != "localhost" && (err != nil || !a.IsLoopback()) {
		fmt.Fprintf(stderr, "%s accepts hooks with the skins' key only: add --key-file FILE\n", f.url)
	}
	if f.write {
		return f.merge(agent, block, stdout, stderr)
	}
	settings, err := mergeHooks(object{}, block)
	if err == nil {
		_, err = stdout.Write(settings.pretty())
	}
	return err
}

// merge replaces Perch's hooks in the agent's settings. A nil block removes them.
func (f *hooksFlags) merge(agent codingAgent, block object, stdout, stderr io.Writer) error {
	file, err := f.file(agent)
	if err != nil {
		return err
	}
	backup, changed, notes, err := mergeIntoFile(file, block)
	if err != nil {
		return err
	}
	unchanged, hint := "%s already has these hooks\n", agent.hint
	if block == nil {
		unchanged, hint, notes = "%s has none of Perch's hooks\n", "", nil
	}
	for _, note := range notes {
		fmt.Fprintln(stderr, note)
	}
	switch {
	case f.json:
		return command.WriteJSON(stdout, map[string]any{"file": file, "changed": changed, "backup": backup})
	case !changed:
		fmt.Fprintf(stdout, unchanged, file)
	case backup == "":
		fmt.Fprintf(stdout, "%s is written%s\n", file, hint)
	default:
		fmt.Fprintf(stdout, "%s is written; its previous content is in %s%s\n", file, backup, hint)
	}
	return nil
}

// codingAgent is a coding agent that runs hooks.
type codingAgent struct {
	name        string
	dirVariable string   // environment variable with the path of the settings folder
	dir         string   // settings folder in the user's home if dirVariable is not set
	file        string   // name of the file with the hooks in the settings folder
	option      string   // value of --agent in the hooks; empty for Claude Code
	events      []string // events to report, except for shortEvents and PermissionRequest
	shortEvents []string // events to report whose hooks the agent kills after 3 s
	hint        string   // advice that is printed after the hooks were written
}

// codingAgents returns the supported agents.
func codingAgents() []codingAgent {
	return []codingAgent{
		{name: "claude", dirVariable: "CLAUDE_CONFIG_DIR", dir: ".claude", file: "settings.json", events: []string{
			"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Notification", "SubagentStart", "SubagentStop",
			"PreCompact", "Stop", "StopFailure", "SessionEnd"}},
		{name: "codex", dirVariable: "CODEX_HOME", dir: ".codex", file: "hooks.json", option: "codex", events: []string{
			"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "PreCompact", "Stop"},
			shortEvents: []string{"Interrupt", "SessionEnd"}, hint: "; Codex runs hooks only after you trust them: type /hooks in Codex"},
	}
}

// agentNamed returns the agent with the given name, which must be one of agentNames.
func agentNamed(name string) codingAgent {
	agents := codingAgents()
	return agents[slices.IndexFunc(agents, func(a codingAgent) bool { return a.name == name })]
}

// agentNames returns the names of the agents, separated by "|".
func agentNames() string {
	var names []string
	for _, a := range codingAgents() {
		names = append(names, a.name)
	}
	return strings.Join(names, "|")
}

// file returns the path of the agent's settings. Symbolic links are resolved: replaceFile
// would otherwise replace the link.
func (f *hooksFlags) file(agent codingAgent) (string, error) {
	file := f.settings
	if file == "" {
		dir := os.Getenv(agent.dirVariable)
		if dir == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("find the settings: %w; name them with --settings", err)
			}
			dir = filepath.Join(home, agent.dir)
		}
		file = filepath.Join(dir, agent.file)
	}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		return target, nil
	}
	return file, nil // the file does not exist yet
}

// hookMark is the text of a shell comment at the end of each hook that this program writes into
// the settings. It distinguishes these hooks from the user's.
const hookMark = "by=perch-tools"

// block returns an object with a group of hooks for each event of the agent. program is the path of
// this program. The hooks run this program instead of sending HTTP requests themselves, so that the
// agent continues if the appliance does not respond, and the settings do not contain the key.
func (f *hooksFlags) block(program string, agent codingAgent) object {
	type run struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"` // seconds
	}
	type group struct {
		Hooks []run `json:"hooks"`
	}
	hook := func(event, kind string, timeout int) member {
		words := []string{shellQuote(program), "hooks", "send", kind}
		if agent.option != "" {
			words = append(words, "--agent", agent.option)
		}
		words = append(words, "--url", shellQuote(f.url.String()))
		if f.keyFile != "" {
			words = append(words, "--key-file", shellQuote(f.keyFile))
		}
		return member{event, encodeJSON(group{[]run{{"command", strings.Join(words, " ") + " # " + hookMark, timeout}}})}
	}
	block := object{}
	for _, event := range agent.events {
		block = append(block, hook(event, "state", 5))
	}
	for _, event := range agent.shortEvents {
		block = append(block, hook(event, "state", 3))
	}
	return append(block, hook("PermissionRequest", "permission", 120))
}

// shellQuote quotes a word for a shell, if necessary.
func shellQuote(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._:-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// encodeJSON returns v as JSON without escaping HTML characters.
func encodeJSON(v any) json.RawMessage {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // cannot happen: callers pass strings, numbers and valid JSON
	}
	return bytes.TrimSpace(text.Bytes())
}
