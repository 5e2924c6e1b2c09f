package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hooksFlags are the options of perch-tools hooks.
type hooksFlags struct {
	url      *url.URL
	keyFile  string
	key      string
	settings string
	agent    string
	write    bool
	words    []string // behind the verb
}

// hooksVerbs are what follows perch-tools hooks, with what each does.
func hooksVerbs() [][2]string {
	return [][2]string{
		{"install", "has a coding agent's hooks drive the appliance: hooks install claude"},
		{"remove", "takes these hooks out of a coding agent's settings: hooks remove claude"},
		{"send", "is what the hooks run: it passes on what the agent tells"},
	}
}

// hooks installs what has a coding agent tell the appliance what it does, removes
// it, or is what such an agent runs.
func hooks(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	verb := ""
	if len(args) > 0 {
		verb = args[0]
	}
	switch verb {
	case "send":
		// An agent takes the exit code 2 for a veto, so it never gets one.
		f, err := parseHooks("send", args[1:], stdout)
		if err == nil {
			err = sendHook(ctx, f, os.Stdin, stdout)
		}
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		if err != nil {
			fmt.Fprintf(stderr, "perch-tools hooks send: %s\n", oneLine(err))
		}
		return nil
	case "install", "remove":
		f, err := parseHooks(verb, args[1:], stdout)
		if err != nil {
			return err
		}
		return changeHooks(f, verb == "install", stdout, stderr)
	case "help", "-h", "-help", "--help":
		fmt.Fprintf(stdout, "usage: perch-tools hooks install|remove %s [options]\n", agentNames())
		return nil
	}
	return fmt.Errorf("%w: it is perch-tools hooks install %s, or remove", errUsage, agentNames())
}

func parseHooks(verb string, args []string, stdout io.Writer) (*hooksFlags, error) {
	f := &hooksFlags{}
	s := flag.NewFlagSet("perch-tools hooks "+verb, flag.ContinueOnError)
	s.SetOutput(io.Discard)
	address := new(string)
	if verb != "remove" {
		s.StringVar(address, "url", cmp.Or(os.Getenv("PERCH_URL"), keyless), "`URL` of the appliance")
		s.StringVar(&f.keyFile, "key-file", "", "`FILE` that holds the skins' key (skins.key)")
	}
	switch verb {
	case "install":
		s.StringVar(&f.settings, "settings", "", "`FILE` to write to; the user's own settings of the agent by default")
		s.BoolVar(&f.write, "write", false, "merge it into that file, and keep a backup")
	case "remove":
		s.StringVar(&f.settings, "settings", "", "`FILE` to take them out of; the user's own settings of the agent by default")
	case "send":
		s.StringVar(&f.agent, "agent", "", "`NAME` of the agent that tells; Claude Code by default")
	}
	err := s.Parse(args)
	for err == nil && s.NArg() > 0 { // flags may stand behind the words, too
		f.words = append(f.words, s.Arg(0))
		err = s.Parse(s.Args()[1:])
	}
	if errors.Is(err, flag.ErrHelp) {
		return nil, helped(s, stdout, map[string]string{"install": agentNames(), "remove": agentNames(), "send": "state|permission"}[verb])
	}
	if err == nil {
		f.url, err = url.Parse(strings.TrimSuffix(*address, "/"))
	}
	if err == nil && verb != "remove" && (f.url.Scheme != "http" && f.url.Scheme != "https" || f.url.Host == "" || f.url.RawQuery != "") {
		err = fmt.Errorf("--url %q is no address such as http://perch.local:8003", *address)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if f.keyFile == "" {
		return f, nil
	}
	if f.keyFile, err = filepath.Abs(f.keyFile); err != nil {
		return nil, fmt.Errorf("find the key: %w", err)
	}
	key, err := os.ReadFile(f.keyFile)
	if err != nil {
		return nil, fmt.Errorf("read the skins' key: %w", err)
	}
	if f.key = strings.TrimSpace(string(key)); f.key == "" || strings.ContainsAny(f.key, " \t\r\n") {
		return nil, fmt.Errorf("%s holds no key; it is one word, the value of skins.key", f.keyFile)
	}
	return f, nil
}

// changeHooks prints the settings block or merges it into the settings, or takes
// it out of them.
func changeHooks(f *hooksFlags, install bool, stdout, stderr io.Writer) error {
	at := -1
	if len(f.words) == 1 {
		at = slices.IndexFunc(codingAgents(), func(a codingAgent) bool { return a.name == f.words[0] })
	}
	if at < 0 {
		return fmt.Errorf("%w: the agent has to be %s", errUsage, strings.ReplaceAll(agentNames(), "|", " or "))
	}
	agent := codingAgents()[at]
	var block object
	if install {
		program, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		block = f.block(program, agent)
		if a, err := netip.ParseAddr(f.url.Hostname()); f.key == "" && f.url.Hostname() != "localhost" && (err != nil || !a.IsLoopback()) {
			fmt.Fprintf(stderr, "%s takes hooks with the skins' key only: add --key-file FILE\n", f.url)
		}
		if !f.write {
			_, err := stdout.Write(object{{"hooks", block.text()}}.pretty())
			return err
		}
	}
	file, err := f.file(agent)
	if err != nil {
		return err
	}
	backup, changed, notes, err := mergeInto(file, block)
	if err != nil {
		return err
	}
	same, next := "%s has these hooks already\n", agent.next
	if !install {
		same, next, notes = "%s has none of Perch's hooks\n", "", nil
	}
	for _, note := range notes {
		fmt.Fprintln(stderr, note)
	}
	switch {
	case !changed:
		fmt.Fprintf(stdout, same, file)
	case backup == "":
		fmt.Fprintf(stdout, "%s is written%s\n", file, next)
	default:
		fmt.Fprintf(stdout, "%s is written; what it was before is in %s%s\n", file, backup, next)
	}
	return nil
}

// codingAgent is an agent whose hooks are known here.
type codingAgent struct {
	name   string
	home   string // the environment's name for its folder
	dir    string // that folder within the user's own, otherwise
	file   string // of its hooks, in that folder
	says   string // how it is called to the appliance, where that is not Claude Code
	events []string
	brief  []string // events that it waits for no longer than 3 s
	next   string   // to be done once they are installed
}

func codingAgents() []codingAgent {
	return []codingAgent{
		{name: "claude", home: "CLAUDE_CONFIG_DIR", dir: ".claude", file: "settings.json", events: []string{
			"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Notification", "SubagentStart", "SubagentStop",
			"PreCompact", "Stop", "StopFailure", "SessionEnd"}},
		{name: "codex", home: "CODEX_HOME", dir: ".codex", file: "hooks.json", says: "codex", events: []string{
			"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "PreCompact", "Stop"},
			brief: []string{"Interrupt", "SessionEnd"}, next: "; Codex runs its hooks once you have trusted them: type /hooks in Codex"},
	}
}

// agentNames are the agents as they are named to this command.
func agentNames() string {
	var names []string
	for _, a := range codingAgents() {
		names = append(names, a.name)
	}
	return strings.Join(names, "|")
}

// file is where the settings are. A link is followed, so that it stays one.
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
	return file, nil // there is none yet
}

// mark tells our own hooks from all others in the settings.
const mark = "by=perch-tools"

// block are the hooks, by event. They run this program: it is silent where the
// appliance is not there, which a hook by HTTP is not, and the key stays in its
// file.
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
		if agent.says != "" {
			words = append(words, "--agent", agent.says)
		}
		words = append(words, "--url", quoted(f.url.String()))
		if f.keyFile != "" {
			words = append(words, "--key-file", quoted(f.keyFile))
		}
		return member{event, encoded([]group{{[]run{{"command", strings.Join(words, " ") + " # " + mark, timeout}}}})}
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

// quoted is a word for a shell.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._:-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// encoded is JSON as a person would write it.
func encoded(v any) json.RawMessage {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // texts and numbers
	}
	return bytes.TrimSpace(text.Bytes())
}
