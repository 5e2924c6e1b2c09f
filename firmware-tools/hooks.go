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

type hooksFlags struct {
	address  string
	keyFile  string
	settings string
	agent    string
	write    bool
	json     bool

	url *url.URL
	key string
}

func hooksCommand() *cobra.Command {
	c := &cobra.Command{Use: "hooks", Short: "Have a coding agent's hooks drive the appliance"}
	c.AddCommand(hooksInstallCommand(&hooksFlags{}), hooksRemoveCommand(&hooksFlags{}), hooksSendCommand(&hooksFlags{}))
	return c
}

func hooksInstallCommand(f *hooksFlags) *cobra.Command {
	c := &cobra.Command{
		Use:     "install " + agentNames(),
		Short:   "Print the hooks for a coding agent's settings, or write them there",
		Example: "perch-tools hooks install claude --write",
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.prepare(); err != nil {
				return err
			}
			return f.install(agentNamed(args[0]), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.register(c)
	c.Flags().StringVar(&f.settings, "settings", "", "`FILE` to write to; the user's own settings of the agent by default")
	c.Flags().BoolVar(&f.write, "write", false, "merge them into that file, and keep a backup")
	c.Flags().BoolVar(&f.json, "json", false, "with --write, print JSON")
	return c
}

func hooksRemoveCommand(f *hooksFlags) *cobra.Command {
	c := &cobra.Command{
		Use:     "remove " + agentNames(),
		Short:   "Remove these hooks from a coding agent's settings",
		Example: "perch-tools hooks remove claude",
		RunE: func(c *cobra.Command, args []string) error {
			return f.merge(agentNamed(args[0]), nil, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&f.settings, "settings", "", "`FILE` to remove them from; the user's own settings of the agent by default")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return c
}

func hooksSendCommand(f *hooksFlags) *cobra.Command {
	c := &cobra.Command{
		Use:   "send state|permission",
		Short: "Send an agent's event to the appliance; the hooks run this command",
		Args:  cobra.ArbitraryArgs, // sendHook checks them: the exit code must not be 2
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
	c.Flags().StringVar(&f.agent, "agent", "", "`NAME` of the agent; Claude Code by default")
	return c
}

// harmless is an error with the exit code 0: for an agent 2 is a veto.
type harmless struct{ error }

// ExitCode returns the exit code of the program.
func (harmless) ExitCode() int { return 0 }

func (f *hooksFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.address, "url", cmp.Or(os.Getenv("PERCH_URL"), keyless), "`URL` of the appliance")
	c.Flags().StringVar(&f.keyFile, "key-file", "", "`FILE` that holds the skins' key (skins.key)")
}

func (f *hooksFlags) prepare() (err error) {
	f.url, err = url.Parse(strings.TrimSuffix(f.address, "/"))
	if err != nil || f.url.Scheme != "http" && f.url.Scheme != "https" || f.url.Host == "" || f.url.RawQuery != "" {
		return command.Usagef("--url %q is not an address such as http://perch.local:8003", f.address)
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
		return fmt.Errorf("%s does not hold a key, which is one word, the value of skins.key", f.keyFile)
	}
	return nil
}

// install prints the hooks, or writes them into the agent's settings.
func (f *hooksFlags) install(agent codingAgent, stdout, stderr io.Writer) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	block := f.block(program, agent)
	if a, err := netip.ParseAddr(f.url.Hostname()); f.key == "" && f.url.Hostname() != "localhost" && (err != nil || !a.IsLoopback()) {
		fmt.Fprintf(stderr, "%s takes hooks with the skins' key only: add --key-file FILE\n", f.url)
	}
	if f.write {
		return f.merge(agent, block, stdout, stderr)
	}
	all, err := merged(object{}, block)
	if err == nil {
		_, err = stdout.Write(all.pretty())
	}
	return err
}

// merge writes hooks into the agent's settings, in place of earlier ones. A nil
// block removes them.
func (f *hooksFlags) merge(agent codingAgent, block object, stdout, stderr io.Writer) error {
	file, err := f.file(agent)
	if err != nil {
		return err
	}
	backup, changed, notes, err := mergeInto(file, block)
	if err != nil {
		return err
	}
	same, next := "%s has these hooks already\n", agent.next
	if block == nil {
		same, next, notes = "%s has none of Perch's hooks\n", "", nil
	}
	for _, note := range notes {
		fmt.Fprintln(stderr, note)
	}
	switch {
	case f.json:
		return command.WriteJSON(stdout, map[string]any{"file": file, "changed": changed, "backup": backup})
	case !changed:
		fmt.Fprintf(stdout, same, file)
	case backup == "":
		fmt.Fprintf(stdout, "%s is written%s\n", file, next)
	default:
		fmt.Fprintf(stdout, "%s is written; what it was before is in %s%s\n", file, backup, next)
	}
	return nil
}

// codingAgent is an agent that runs hooks.
type codingAgent struct {
	name   string
	home   string // the environment's name for its folder
	dir    string // the default folder, in the user's home
	file   string // its hooks, in that folder
	sent   string // its name to the appliance, if it is not Claude Code
	events []string
	brief  []string // events whose hooks it stops after 3 s
	next   string   // advice for the user
}

func codingAgents() []codingAgent {
	return []codingAgent{
		{name: "claude", home: "CLAUDE_CONFIG_DIR", dir: ".claude", file: "settings.json", events: []string{
			"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Notification", "SubagentStart", "SubagentStop",
			"PreCompact", "Stop", "StopFailure", "SessionEnd"}},
		{name: "codex", home: "CODEX_HOME", dir: ".codex", file: "hooks.json", sent: "codex", events: []string{
			"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "PreCompact", "Stop"},
			brief: []string{"Interrupt", "SessionEnd"}, next: "; Codex runs its hooks once you have trusted them: type /hooks in Codex"},
	}
}

// agentNamed returns an agent of agentNames.
func agentNamed(name string) codingAgent {
	all := codingAgents()
	return all[slices.IndexFunc(all, func(a codingAgent) bool { return a.name == name })]
}

// agentNames returns the names of the agents, as a Use line lists them.
func agentNames() string {
	var names []string
	for _, a := range codingAgents() {
		names = append(names, a.name)
	}
	return strings.Join(names, "|")
}

// file returns the path of the settings. A link is followed, so that it stays one.
func (f *hooksFlags) file(agent codingAgent) (string, error) {
	file := f.settings
	if file == "" {
		dir := os.Getenv(agent.home)
		if dir == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("find the settings: %w; name them with --settings", err)
			}
			dir = filepath.Join(home, agent.dir)
		}
		file = filepath.Join(dir, agent.file)
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		return real, nil
	}
	return file, nil // it does not exist yet
}

// mark identifies our own hooks in the settings.
const mark = "by=perch-tools"

// block returns a group of hooks for each event. They run this program, which unlike a hook
// by HTTP is silent without an appliance, and keeps the key out of the settings.
func (f *hooksFlags) block(program string, agent codingAgent) object {
	type run struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"` // seconds
	}
	type group struct {
		Hooks []run `json:"hooks"`
	}
	one := func(event, what string, timeout int) member {
		words := []string{quoted(program), "hooks", "send", what}
		if agent.sent != "" {
			words = append(words, "--agent", agent.sent)
		}
		words = append(words, "--url", quoted(f.url.String()))
		if f.keyFile != "" {
			words = append(words, "--key-file", quoted(f.keyFile))
		}
		return member{event, encoded(group{[]run{{"command", strings.Join(words, " ") + " # " + mark, timeout}}})}
	}
	all := object{}
	for _, event := range agent.events {
		all = append(all, one(event, "state", 5))
	}
	for _, event := range agent.brief {
		all = append(all, one(event, "state", 3))
	}
	return append(all, one("PermissionRequest", "permission", 120))
}

// quoted returns a word as a shell reads it.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._:-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// encoded returns JSON without escaped HTML.
func encoded(v any) json.RawMessage {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // texts, numbers and JSON
	}
	return bytes.TrimSpace(text.Bytes())
}
