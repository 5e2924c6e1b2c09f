package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"perch/limit"
	"perch/plain"
)

// Maximum duration of a request to the appliance.
const (
	stateWithin      = 2500 * time.Millisecond // Codex kills some hooks after 3 s
	permissionWithin = 115 * time.Second       // the appliance responds once a person has allowed or denied the tool
)

// sendHook sends the input of a hook to the appliance. args is one word, state or permission. For
// state, sendHook sends only the fields that withoutContent selects. For permission, it sends the
// whole input, and prints the response, which contains the decision for the agent.
func sendHook(ctx context.Context, f *hooksFlags, args []string, stdin io.Reader, stdout io.Writer) error {
	within := map[string]time.Duration{"state": stateWithin, "permission": permissionWithin}
	if len(args) != 1 || within[args[0]] == 0 {
		return errors.New("the argument must be state or permission")
	}
	endpoint := args[0]
	body, err := io.ReadAll(io.LimitReader(stdin, limit.Message+1))
	if err != nil {
		return fmt.Errorf("read the input of the hook: %w", err)
	}
	if len(body) > limit.Message {
		return fmt.Errorf("the input of the hook has more than %d bytes", limit.Message)
	}
	if endpoint == "state" {
		body = withoutContent(body)
	}
	ctx, cancel := context.WithTimeout(ctx, within[endpoint])
	defer cancel()
	address := f.url.String() + "/" + endpoint
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
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a redirect could send the key to another host
	}
	response, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("the appliance does not answer: %w", errors.Unwrap(err))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, limit.Body))
	switch {
	case err != nil:
		return fmt.Errorf("read the response: %w", err)
	case response.StatusCode >= 300:
		return fmt.Errorf("the appliance answered %s: %s", response.Status, cmp.Or(refusal(text), "without a reason"))
	case endpoint == "permission" && json.Valid(text):
		_, err = stdout.Write(text)
	}
	return err
}

// withoutContent returns the input of a hook, reduced to the fields that the appliance needs to
// show a state or the call of a tool. Prompts and the content of files are removed. If a turn has
// ended with an error of the model's API, withoutContent changes the event Stop to StopFailure.
func withoutContent(body []byte) []byte {
	var whole map[string]json.RawMessage
	if json.Unmarshal(body, &whole) != nil {
		return body // the appliance rejects invalid JSON with a reason
	}
	allowed := map[string]json.RawMessage{}
	for _, name := range []string{"hook_event_name", "session_id", "agent_id", "tool_name", "tool_use_id"} {
		if v, exists := whole[name]; exists {
			allowed[name] = v
		}
	}
	var event, transcript string
	if json.Unmarshal(whole["hook_event_name"], &event) == nil && event == "Stop" {
		allowed["stop_hook_active"] = json.RawMessage(cmp.Or(string(whole["stop_hook_active"]), "false"))
		var tasks []struct {
			Status string `json:"status"`
		}
		if json.Unmarshal(whole["background_tasks"], &tasks) == nil {
			allowed["background_tasks"] = encodeJSON(tasks)
		}
		if json.Unmarshal(whole["transcript_path"], &transcript) == nil && endsInAPIError(transcript) {
			allowed["hook_event_name"] = encodeJSON("StopFailure")
		}
	}
	var tool string
	if json.Unmarshal(whole["tool_name"], &tool) == nil {
		if name, text := shownInput(tool, whole["tool_input"]); text != "" {
			allowed["tool_input"] = encodeJSON(map[string]string{name: text})
		}
	}
	return encodeJSON(allowed)
}

// endsInAPIError reports whether the last line of a coding session's transcript is an error of the
// model's API. Claude Code reports the same event Stop after such an error as after success.
func endsInAPIError(transcript string) bool {
	f, err := os.Open(transcript)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-limit.Body), limit.Body))
	if err != nil {
		return false
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	var last struct {
		IsAPIError bool `json:"isApiErrorMessage"`
	}
	return json.Unmarshal(lines[len(lines)-1], &last) == nil && last.IsAPIError
}

// maxShownInput is the maximum number of bytes of a tool's input that are sent to the appliance.
const maxShownInput = 1000

// shownInput returns the name and the text of the field of a tool's input that shows what the tool
// does, such as a command, a file name or a URL without its path. text is empty if the tool is
// unknown or has no such field in this call.
func shownInput(tool string, input json.RawMessage) (name, text string) {
	name = map[string]string{"Bash": "command", "apply_patch": "command", "Read": "file_path", "Edit": "file_path", "Write": "file_path",
		"MultiEdit": "file_path", "NotebookEdit": "notebook_path", "WebFetch": "url", "WebSearch": "query", "Grep": "pattern", "Glob": "pattern",
		"Task": "description", "Agent": "description"}[tool]
	var in map[string]json.RawMessage
	if name == "" || json.Unmarshal(input, &in) != nil || json.Unmarshal(in[name], &text) != nil {
		return name, ""
	}
	switch tool {
	case "WebFetch":
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return name, ""
		}
		text = u.Scheme + "://" + u.Host
	case "apply_patch": // only the lines that name files
		var files strings.Builder
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "*** ") && strings.Contains(line, " File: ") {
				files.WriteString(line)
			}
		}
		text = files.String()
	}
	return name, plain.Clip(text, maxShownInput)
}
