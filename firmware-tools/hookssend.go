package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// What a hook may bring, in bytes, and how long the appliance may take: a
// permission is held there until somebody answers.
const (
	mostHook         = 4 << 20
	mostVerdict      = 64 << 10
	stateWithin      = 4 * time.Second
	permissionWithin = 115 * time.Second
)

// sendHook passes on what an agent tells its hook, and prints what it is to be
// told: nothing, or the answer to a permission.
func sendHook(ctx context.Context, f *hooksFlags, stdin io.Reader, stdout io.Writer) error {
	within := map[string]time.Duration{"state": stateWithin, "permission": permissionWithin}
	if len(f.words) != 1 || within[f.words[0]] == 0 {
		return errors.New("it sends state or permission")
	}
	what := f.words[0]
	body, err := io.ReadAll(io.LimitReader(stdin, mostHook+1))
	if err != nil {
		return fmt.Errorf("read what the agent tells: %w", err)
	}
	if len(body) > mostHook {
		return fmt.Errorf("the agent tells more than %d bytes", mostHook)
	}
	if what == "state" {
		body = brief(body)
	}
	ctx, cancel := context.WithTimeout(ctx, within[what])
	defer cancel()
	address := f.url.String() + "/" + what
	if f.agent != "" {
		address += "?" + url.Values{"agent": {f.agent}}.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the address %q cannot be used: %w", f.url, err)
	}
	r.Header.Set("Content-Type", "application/json")
	if f.key != "" {
		r.Header.Set("Authorization", "Bearer "+f.key)
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a key goes nowhere else
	}
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("the appliance does not answer: %w", errors.Unwrap(err))
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostVerdict))
	switch {
	case err != nil:
		return fmt.Errorf("the answer broke off: %w", err)
	case answer.StatusCode >= 300:
		return fmt.Errorf("the appliance answered %s: %s", answer.Status, refusal(text))
	case what == "permission" && json.Valid(text):
		_, err = stdout.Write(text)
	}
	return err
}

// brief is of what an agent tells its hook only what a state and a tool's call are
// made of: what people say and what files hold stays where it is.
func brief(body []byte) []byte {
	var whole map[string]json.RawMessage
	if json.Unmarshal(body, &whole) != nil {
		return body // the appliance says what is wrong with it
	}
	kept := map[string]json.RawMessage{}
	for _, name := range []string{"hook_event_name", "session_id", "agent_id", "tool_name", "tool_use_id"} {
		if v, there := whole[name]; there {
			kept[name] = v
		}
	}
	var tool string
	if json.Unmarshal(whole["tool_name"], &tool) == nil {
		if name, what := runs(tool, whole["tool_input"]); what != "" {
			kept["tool_input"] = encoded(map[string]string{name: what})
		}
	}
	return encoded(kept)
}

// mostRuns bounds what is passed on of what a tool is called with, in bytes.
const mostRuns = 1000

// runs is of what a tool is called with the one text that says what it does, and
// its name: a command, a file's name, a host. It is empty for other tools.
func runs(tool string, input json.RawMessage) (name, what string) {
	name = map[string]string{"Bash": "command", "apply_patch": "command", "Read": "file_path", "Edit": "file_path", "Write": "file_path",
		"MultiEdit": "file_path", "NotebookEdit": "notebook_path", "WebFetch": "url", "WebSearch": "query", "Grep": "pattern", "Glob": "pattern",
		"Task": "description", "Agent": "description"}[tool]
	var in map[string]json.RawMessage
	if name == "" || json.Unmarshal(input, &in) != nil || json.Unmarshal(in[name], &what) != nil {
		return name, ""
	}
	switch tool {
	case "WebFetch":
		u, err := url.Parse(what)
		if err != nil || u.Host == "" {
			return name, ""
		}
		what = u.Scheme + "://" + u.Host
	case "apply_patch": // whose lines are those of files
		var files strings.Builder
		for line := range strings.Lines(what) {
			if strings.HasPrefix(line, "*** ") && strings.Contains(line, " File: ") {
				files.WriteString(line)
			}
		}
		what = files.String()
	}
	if len(what) > mostRuns {
		what = strings.ToValidUTF8(what[:mostRuns], "")
	}
	return name, what
}

// refusal is what an error of the appliance says.
func refusal(text []byte) string {
	var told struct{ Error struct{ Message string } }
	if json.Unmarshal(text, &told) == nil && told.Error.Message != "" {
		return told.Error.Message
	}
	return "it does not say why"
}
