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

// Limits of the details of a turn. The details take at most about 40 kilobytes of a stored turn.
const (
	maxTurnTools = 16  // tools, and as many calls of the robot's own tools
	maxCallText  = 500 // bytes of a call's arguments, of its result and of its error
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
	Tokens   int        `json:"tokens,omitempty"` // tokens that the brain has used, if it counts them
	Reason   string     `json:"reason,omitempty"` // cause of a failure
}

// turnDetails collects the details of a turn. It is safe for concurrent use.
type turnDetails struct {
	mu      sync.Mutex
	details Details
	toolIDs []string // IDs of the tools in details
}

// add adds the details in an event of the turn.
func (d *turnDetails) add(e event.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch e := e.(type) {
	case event.ThinkingStarted:
		d.details.Brain = e.Brain
	case event.Thought:
		if d.details.Thoughts != "" {
			e.Text = d.details.Thoughts + "\n" + e.Text
		}
		d.details.Thoughts = plain.Clip(e.Text, limit.Text)
	case event.ToolStatus:
		d.addTool(e)
	}
}

// addTokens counts tokens that the brain has used.
func (d *turnDetails) addTokens(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.details.Tokens += n
}

// addTool adds a tool, or changes its status. It ignores tools beyond maxTurnTools. d.mu must be held.
func (d *turnDetails) addTool(e event.ToolStatus) {
	i := slices.Index(d.toolIDs, e.ID)
	if i < 0 {
		if len(d.toolIDs) >= maxTurnTools {
			return
		}
		i = len(d.toolIDs)
		d.toolIDs, d.details.Tools = append(d.toolIDs, e.ID), append(d.details.Tools, ToolUse{})
	}
	use := &d.details.Tools[i]
	use.Name, use.Status = plain.Clip(e.Name, limit.Name), e.Status
	if e.Detail != "" {
		use.Detail = plain.Clip(e.Detail, limit.Name)
	}
}

// addCall adds a call of one of the robot's tools, and ignores calls beyond maxTurnTools.
func (d *turnDetails) addCall(tool string, arguments map[string]any, result device.Result, err error) {
	text, _ := json.Marshal(arguments) // arguments came as JSON
	call := ToolCall{Name: plain.Clip(tool, limit.Name), Arguments: plain.Clip(string(text), maxCallText), Result: plain.Clip(result.Text, maxCallText)}
	if err != nil {
		call.Error = plain.Clip(err.Error(), maxCallText)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.details.Calls) < maxTurnTools {
		d.details.Calls = append(d.details.Calls, call)
	}
}

// snapshot returns a copy of the details so far.
func (d *turnDetails) snapshot() Details {
	d.mu.Lock()
	defer d.mu.Unlock()
	copied := d.details
	copied.Tools, copied.Calls = slices.Clone(copied.Tools), slices.Clone(copied.Calls)
	return copied
}
