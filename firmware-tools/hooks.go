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
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// hooksFlags are the options of perch-tools hooks.
type hooksFlags struct {
	url      *url.URL
	keyFile  string
	key      string
	settings string
	write    bool
	words    []string // behind the verb
}

// hooks installs what has a coding agent tell the appliance what it does, or is
// what such an agent runs.
func hooks(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "send" {
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
	}
	if len(args) == 0 || args[0] != "install" {
		if len(args) > 0 && strings.Trim(args[0], "-") == "help" || len(args) > 0 && args[0] == "-h" {
			fmt.Fprintln(stdout, "usage: perch-tools hooks install claude [options]")
			return nil
		}
		return fmt.Errorf("%w: it is perch-tools hooks install claude", errUsage)
	}
	f, err := parseHooks("install", args[1:], stdout)
	if err != nil {
		return err
	}
	return installHooks(f, stdout, stderr)
}

func parseHooks(verb string, args []string, stdout io.Writer) (*hooksFlags, error) {
	f := &hooksFlags{}
	s := flag.NewFlagSet("perch-tools hooks "+verb, flag.ContinueOnError)
	s.SetOutput(io.Discard)
	address := s.String("url", cmp.Or(os.Getenv("PERCH_URL"), keyless), "`URL` of the appliance")
	s.StringVar(&f.keyFile, "key-file", "", "`FILE` that holds the skins' key (skins.key)")
	if verb == "install" {
		s.StringVar(&f.settings, "settings", "", "`FILE` to write to; the user's own settings of the agent by default")
		s.BoolVar(&f.write, "write", false, "merge it into that file, and keep a backup")
	}
	err := s.Parse(args)
	for err == nil && s.NArg() > 0 { // flags may stand behind the words, too
		f.words = append(f.words, s.Arg(0))
		err = s.Parse(s.Args()[1:])
	}
	if errors.Is(err, flag.ErrHelp) {
		return nil, helped(s, stdout, map[string]string{"install": "claude", "send": "state|permission"}[verb])
	}
	if err == nil {
		f.url, err = url.Parse(strings.TrimSuffix(*address, "/"))
	}
	if err == nil && (f.url.Scheme != "http" && f.url.Scheme != "https" || f.url.Host == "" || f.url.RawQuery != "") {
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

// installHooks prints the settings block, or merges it into the settings.
func installHooks(f *hooksFlags, stdout, stderr io.Writer) error {
	if len(f.words) != 1 || f.words[0] != "claude" {
		return fmt.Errorf("%w: the agent has to be claude", errUsage)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	block := f.block(program)
	if !f.write {
		_, err := stdout.Write(object{{"hooks", block.text()}}.pretty())
		return err
	}
	file, err := f.file()
	if err != nil {
		return err
	}
	backup, changed, notes, err := mergeInto(file, block)
	for _, note := range notes {
		fmt.Fprintln(stderr, note)
	}
	switch {
	case err != nil:
		return err
	case !changed:
		fmt.Fprintf(stdout, "%s has these hooks already\n", file)
	case backup == "":
		fmt.Fprintf(stdout, "%s is written\n", file)
	default:
		fmt.Fprintf(stdout, "%s is written; what it was before is in %s\n", file, backup)
	}
	return nil
}

// file is where the settings are. A link is followed, so that it stays one.
func (f *hooksFlags) file() (string, error) {
	file := f.settings
	if file == "" {
		dir := os.Getenv("CLAUDE_CONFIG_DIR")
		if dir == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("find the settings: %w; name them with --settings", err)
			}
			dir = filepath.Join(home, ".claude")
		}
		file = filepath.Join(dir, "settings.json")
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		return real, nil
	}
	return file, nil // there is none yet
}

// mark tells our own hooks from all others in the settings.
const mark = "by=perch-tools"

// block are the hooks, by event. The appliance on the agent's own machine is
// reached by HTTP. For any other the agent runs this program, since agents are
// wary of HTTP to the addresses of a house; the key then stays in its file.
func (f *hooksFlags) block(program string) object {
	type group struct {
		Hooks []any `json:"hooks"`
	}
	type headers map[string]string
	type web struct {
		Type    string  `json:"type"`
		URL     string  `json:"url"`
		Headers headers `json:"headers,omitempty"`
		Timeout int     `json:"timeout"` // seconds
	}
	type run struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"`
	}
	near := f.near()
	one := func(what string, timeout int) json.RawMessage {
		if near {
			h := web{"http", f.url.String() + "/" + what + "?" + mark, nil, timeout}
			if f.key != "" {
				h.Headers = headers{"Authorization": "Bearer " + f.key}
			}
			return encoded([]group{{[]any{h}}})
		}
		words := []string{quoted(program), "hooks", "send", what, "--url", quoted(f.url.String())}
		if f.keyFile != "" {
			words = append(words, "--key-file", quoted(f.keyFile))
		}
		return encoded([]group{{[]any{run{"command", strings.Join(words, " ") + " # " + mark, timeout}}}})
	}
	all := object{}
	if !near {
		all = append(all, member{"SessionStart", one("state", 5)}) // which agents do not tell by HTTP
	}
	for _, event := range []string{"UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Notification", "SubagentStart", "SubagentStop",
		"PreCompact", "Stop", "StopFailure", "SessionEnd"} {
		all = append(all, member{event, one("state", 5)})
	}
	return append(all, member{"PermissionRequest", one("permission", 120)})
}

// near reports whether the appliance is on this machine.
func (f *hooksFlags) near() bool {
	host := f.url.Hostname()
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback() || net.ParseIP(host).IsLoopback()
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
