package hooks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"perch/event"
	"perch/limit"
	"perch/plain"
	"perch/remote"
)

// call is a running call of a tool.
type call struct {
	id     string // ID of the call from the agent, or from withCall if the agent has sent none
	name   string // name of the tool
	detail string // short description on one line; may be empty
	bare   bool   // whether the report had a state but no event; see updateCalls
}

// maxCalls bounds the running calls of a session.
const maxCalls = 32

// withCall returns the session with the running call c added. c replaces a call with the same ID. If the
// session would have more than maxCalls calls, withCall removes the oldest. It ignores a call without a name.
func (s session) withCall(c call) session {
	if c.name == "" {
		return s
	}
	if c.id == "" {
		s.count++
		c.id = fmt.Sprintf("%s-call-%d", name(s.slot), s.count)
	}
	s.calls = append(slices.DeleteFunc(slices.Clone(s.calls), func(r call) bool { return r.id == c.id }), c)
	if len(s.calls) > maxCalls {
		s.calls = s.calls[1:]
	}
	return s
}

// withoutCall returns the session without the running call that has the ID of c, or without
// the oldest call with the same name if c has no ID. done is whether the call succeeded.
func (s session) withoutCall(c call, done bool) session {
	i := slices.IndexFunc(s.calls, func(r call) bool {
		return c.id != "" && r.id == c.id || c.id == "" && c.name != "" && r.name == c.name
	})
	if i < 0 {
		return s
	}
	if done {
		s.done = s.calls[i].id
	}
	s.calls = slices.Delete(slices.Clone(s.calls), i, i+1)
	return s
}

func (c call) same(other call) bool { return c.name == other.name && c.detail == other.detail }

// containsCall reports whether calls contains a call with the ID of c.
func containsCall(calls []call, c call) bool {
	return slices.ContainsFunc(calls, func(r call) bool { return r.id == c.id })
}

// status returns the event that reports a status of the call.
func (c call) status(status string) event.Event {
	return event.ToolStatus{ID: c.id, Name: c.name, Status: status, Detail: c.detail}
}

// callEvents returns the events of the calls that have ended or begun between two views. A call
// that ended without a report of its success counts as failed.
func callEvents(before, after view) (events []event.Event) {
	for _, c := range before.calls {
		switch {
		case containsCall(after.calls, c):
		case c.id == after.done:
			events = append(events, c.status(event.ToolDone))
		default:
			events = append(events, c.status(event.ToolFailed))
		}
	}
	for _, c := range after.calls {
		if !containsCall(before.calls, c) {
			events = append(events, c.status(event.ToolRunning))
		}
	}
	return events
}

// toolInput holds the arguments that show what a call does.
type toolInput struct {
	Command     string `json:"command"`
	FilePath    string `json:"file_path"`
	Notebook    string `json:"notebook_path"`
	URL         string `json:"url"`
	Pattern     string `json:"pattern"`
	Query       string `json:"query"`
	Description string `json:"description"`
}

// describe returns the kind of a tool, such as "edit", and the title of the call: a command, a file
// name, a host, a search pattern or a description. The kind of a search or of a subagent is empty.
// Both results are empty for an unknown tool, and for a call without a title.
func describe(tool string, input json.RawMessage) (kind, title string) {
	var in toolInput
	_ = json.Unmarshal(input, &in) // without a title, only the tool's name is shown
	switch tool {
	case "Bash":
		kind, title = "execute", in.Command
	case "apply_patch":
		kind, title = "edit", patchedFiles(in.Command)
	case "Edit", "Write", "MultiEdit":
		kind, title = "edit", in.FilePath
	case "NotebookEdit":
		kind, title = "edit", in.Notebook
	case "Read":
		kind, title = "read", in.FilePath
	case "WebFetch":
		if u, err := url.Parse(in.URL); err == nil {
			kind, title = "fetch", u.Host
		}
	case "Grep", "Glob", "WebSearch", "Task", "Agent":
		return "", cmp.Or(in.Pattern, in.Query, in.Description)
	}
	if title == "" {
		return "", ""
	}
	return kind, title
}

// patchedFiles returns the names of the files that a patch of Codex changes, separated by commas.
func patchedFiles(patch string) string {
	var files []string
	for line := range strings.Lines(patch) {
		for _, prefix := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "} {
			if file, is := strings.CutPrefix(line, prefix); is {
				files = append(files, strings.TrimSpace(file))
			}
		}
	}
	return strings.Join(files, ", ")
}

// detail returns the title of a call (see describe) on one line of at most limit.Name bytes, without secrets.
func detail(tool string, input json.RawMessage) string {
	_, title := describe(tool, input)
	return remote.Redact(plain.Text(line(title, maxRead)), limit.Name)
}
