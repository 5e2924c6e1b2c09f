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

// call is one call of a tool. It is a value.
type call struct {
	id     string // the agent's own, or one of ours
	name   string
	detail string // a short line of what it does, or empty
	bare   bool   // reported by a state alone: the next report ends it
}

// What is kept of calls: how many run at once, and of each so many bytes.
const mostCalls = 32

// withCall is the session with one more call at work. Of too many the oldest gives way.
func (s session) withCall(c call) session {
	if c.name == "" {
		return s
	}
	if c.id == "" {
		s.count++
		c.id = fmt.Sprintf("%s-call-%d", name(s.slot), s.count)
	}
	s.calls = append(slices.DeleteFunc(slices.Clone(s.calls), func(r call) bool { return r.id == c.id }), c)
	if len(s.calls) > mostCalls {
		s.calls = s.calls[1:]
	}
	return s
}

// withoutCall is the session without a call: that of its id, or where it has none the
// first of its name.
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

// same reports whether two calls are of the same tool for the same thing.
func (c call) same(other call) bool { return c.name == other.name && c.detail == other.detail }

// has reports whether a call is among those.
func has(calls []call, c call) bool {
	return slices.ContainsFunc(calls, func(r call) bool { return r.id == c.id })
}

func (c call) status(status string) event.Event {
	return event.ToolStatus{ID: c.id, Name: c.name, Status: status, Detail: c.detail}
}

// difference is what has happened to calls between two views. A call that is over
// without a report that it is done has failed: it was refused, interrupted or
// lost.
func difference(before, after view) (events []event.Event) {
	for _, c := range before.calls {
		switch {
		case has(after.calls, c):
		case c.id == after.done:
			events = append(events, c.status(event.ToolDone))
		default:
			events = append(events, c.status(event.ToolFailed))
		}
	}
	for _, c := range after.calls {
		if !has(before.calls, c) {
			events = append(events, c.status(event.ToolRunning))
		}
	}
	return events
}

// toolInput is what tools are called with, as far as it describes what they do.
type toolInput struct {
	Command     string `json:"command"`
	FilePath    string `json:"file_path"`
	Notebook    string `json:"notebook_path"`
	URL         string `json:"url"`
	Pattern     string `json:"pattern"`
	Query       string `json:"query"`
	Description string `json:"description"`
}

// does is what kind of tool it is, and what it is applied to. Both are empty for
// a tool of which only the name is known.
func does(tool string, input json.RawMessage) (kind, title string) {
	var in toolInput
	_ = json.Unmarshal(input, &in) // of a tool of another shape only the name is shown
	switch tool {
	case "Bash":
		kind, title = "execute", in.Command
	case "apply_patch":
		kind, title = "edit", patched(in.Command)
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

// patched are the files that a patch of Codex's changes.
func patched(patch string) string {
	var files []string
	for line := range strings.Lines(patch) {
		for _, act := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "} {
			if file, is := strings.CutPrefix(line, act); is {
				files = append(files, strings.TrimSpace(file))
			}
		}
	}
	return strings.Join(files, ", ")
}

// detail is what a call does in one short line, keys blanked.
func detail(tool string, input json.RawMessage) string {
	_, title := does(tool, input)
	return remote.Redact(plain.Text(plain.Line(plain.Clip(title, mostRead))), limit.Name)
}
