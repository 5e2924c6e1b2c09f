package robot

import (
	"encoding/json"
	"slices"
	"sync"

	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/plain"
)

// Limits of the details of a turn. They take up to about ten kilobytes of a stored turn.
const (
	maxAccountTools = 16 // tools, and calls of the robot's tools
	maxCallText     = 500
)

// ToolUse is a tool that was used in a turn.
type ToolUse struct {
	Name   string `json:"name"`
	Status string `json:"status"`           // as in event.ToolStatus
	Detail string `json:"detail,omitempty"` // as in event.ToolStatus
}

// ToolCall is a call of one of the robot's own tools in a turn. Long texts are cut.
type ToolCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`        // JSON
	Result    string `json:"result,omitempty"` // text
	Error     string `json:"error,omitempty"`
}

// Details describes what happened in a turn besides its words.
type Details struct {
	Brain    string     `json:"brain,omitempty"`    // name of the brain that was asked last
	Thoughts string     `json:"thoughts,omitempty"` // what the brain thought, in paragraphs
	Tools    []ToolUse  `json:"tools,omitempty"`
	Calls    []ToolCall `json:"calls,omitempty"`
	Reason   string     `json:"reason,omitempty"` // cause of a failure
}

// account collects the details of a turn. It is safe for concurrent use.
type account struct {
	mu      sync.Mutex
	details Details
	toolIDs []string // IDs of the tools in details
}

// add adds the details in an event of the turn.
func (a *account) add(e event.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch e := e.(type) {
	case event.ThinkingStarted:
		a.details.Brain = e.Brain
	case event.Thought:
		if a.details.Thoughts != "" {
			e.Text = a.details.Thoughts + "\n" + e.Text
		}
		a.details.Thoughts = plain.Clip(e.Text, limit.Text)
	case event.ToolStatus:
		a.addTool(e)
	}
}

// addTool adds a tool, or changes its status. The caller holds a.mu.
func (a *account) addTool(e event.ToolStatus) {
	i := slices.Index(a.toolIDs, e.ID)
	if i < 0 {
		if len(a.toolIDs) >= maxAccountTools {
			return
		}
		i = len(a.toolIDs)
		a.toolIDs, a.details.Tools = append(a.toolIDs, e.ID), append(a.details.Tools, ToolUse{})
	}
	use := &a.details.Tools[i]
	use.Name, use.Status = plain.Clip(e.Name, limit.Name), e.Status
	if e.Detail != "" {
		use.Detail = plain.Clip(e.Detail, limit.Name)
	}
}

// addCall adds a call of one of the robot's tools.
func (a *account) addCall(tool string, arguments map[string]any, result device.Result, err error) {
	text, _ := json.Marshal(arguments) // arguments came as JSON
	call := ToolCall{Name: plain.Clip(tool, limit.Name), Arguments: plain.Clip(string(text), maxCallText), Result: plain.Clip(result.Text, maxCallText)}
	if err != nil {
		call.Error = plain.Clip(err.Error(), maxCallText)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.details.Calls) < maxAccountTools {
		a.details.Calls = append(a.details.Calls, call)
	}
}

// snapshot returns a copy of the details so far.
func (a *account) snapshot() Details {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.details
	d.Tools, d.Calls = slices.Clone(d.Tools), slices.Clone(d.Calls)
	return d
}
