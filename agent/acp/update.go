package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"perch/limit"
	"perch/plain"
)

// item is an event of a turn: text, thought, toolChange, permission, pulse or ended. An
// inbox stores text and thoughts as *joinedText.
type item interface{ isItem() }

// text is text of the agent for the person.
type text string

// thought is text of a thought, or the agent's plan.
type thought string

// toolChange is an update of a tool. Empty fields are unchanged.
type toolChange struct {
	id, title, kind, status string
	name                    string // the tool's name for the model, if the agent reports it
	agent                   bool   // whether the tool is another agent
}

// pulse is a sign of life without further meaning, such as an unknown update.
type pulse struct{}

// ended is the response to the prompt, which ends the turn.
type ended struct {
	reason  string // stopReason of the protocol; "" if the agent gives none
	content string // the whole text, of agents that do not stream it
	err     error  // why the prompt has failed; if set, the other fields are empty
}

func (text) isItem()       {}
func (thought) isItem()    {}
func (toolChange) isItem() {}
func (permission) isItem() {}
func (pulse) isItem()      {}
func (ended) isItem()      {}

// States of a tool in the protocol.
const (
	toolPending   = "pending"
	toolProgress  = "in_progress"
	toolCompleted = "completed"
	toolFailed    = "failed"
)

// sessionID is a session ID in one of the two dialects.
type sessionID struct {
	SessionID string `json:"sessionId"`
	Old       string `json:"session_id"`
}

// id returns the session ID, or "".
func (s sessionID) id() string { return cmp.Or(s.SessionID, s.Old) }

// lenient is a JSON field of type T. A value of another type is accepted and ignored.
type lenient[T any] struct{ value T }

// UnmarshalJSON sets the value if data is a T. It never fails.
func (l *lenient[T]) UnmarshalJSON(data []byte) error {
	var v T
	if json.Unmarshal(data, &v) == nil {
		l.value = v
	}
	return nil
}

// toolCall describes a tool in updates and in requests for permission.
type toolCall struct {
	ID     string `json:"toolCallId"`
	Title  string `json:"title"`
	Kind   string `json:"kind"`
	Status string `json:"status"`
	// RawInput is the input of the tool. It has a subagent_type if the tool is another
	// agent.
	RawInput lenient[struct {
		SubAgent string `json:"subagent_type"`
	}] `json:"rawInput"`
	Meta lenient[toolsMeta] `json:"_meta"`
}

// toolsMeta is an extension of claude-agent-acp.
type toolsMeta struct {
	Claude struct {
		Tool   string `json:"toolName"`        // name of the tool for the model
		Parent string `json:"parentToolUseId"` // ID of the tool that runs the agent that sends this; "" for the main agent
	} `json:"claudeCode"`
}

// change returns the update of the tool. It clips the texts, because the update may stay in
// an inbox for long.
func (t toolCall) change() toolChange {
	kind := t.Kind
	if kind != "" && !slices.Contains(toolKinds(), kind) {
		kind = "other"
	}
	status := t.Status
	if !slices.Contains([]string{toolPending, toolProgress, toolCompleted, toolFailed}, status) {
		status = ""
	}
	name := t.Meta.value.Claude.Tool
	isAgent := t.RawInput.value.SubAgent != "" || name == "Task" || name == "Agent"
	return toolChange{id: plain.Clip(t.ID, limit.Session), title: plain.Clip(t.Title, maxTitle), kind: kind, status: status,
		name: plain.Clip(name, limit.Name), agent: isAgent}
}

// parseUpdate parses the parameters of session/update. The item is nil for a chunk of a message or thought without text.
func parseUpdate(params json.RawMessage) (session string, it item, err error) {
	var p struct {
		sessionID
		Update struct {
			toolCall
			Type    string                               `json:"sessionUpdate"`
			Content lenient[struct{ Type, Text string }] // a list in tool calls, which is ignored
			Entries []planEntry
		} `json:"update"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return "", nil, errors.New("an update cannot be read")
	}
	u, content := p.Update, ""
	if u.Content.value.Type == "text" {
		content = u.Content.value.Text
	}
	switch isChunk := u.Type == "agent_message_chunk" || u.Type == "agent_thought_chunk"; {
	case isChunk && content == "": // not even a sign of life
	case u.Type == "agent_message_chunk" && u.Meta.value.Claude.Parent == "":
		it = text(content)
	case u.Type == "agent_thought_chunk" && u.Meta.value.Claude.Parent == "":
		it = thought(content)
	case u.Type == "plan" && len(u.Entries) > 0:
		it = planText(u.Entries)
	case u.Type == "tool_call" || u.Type == "tool_call_update":
		if u.ID == "" || len(u.ID) > limit.Session {
			return "", nil, errors.New("a tool call has no id, or one that is too long")
		}
		it = u.change()
	default:
		it = pulse{} // thoughts and messages of sub-agents are among these
	}
	return p.id(), it, nil
}

// planEntry is a step of the agent's plan.
type planEntry struct{ Content, Status string }

// planText returns a plan as one paragraph of a thought.
func planText(entries []planEntry) thought {
	var steps []string
	for _, e := range entries {
		sign := map[string]string{"completed": "✓ ", "in_progress": "→ "}[e.Status]
		steps = append(steps, sign+plain.Line(plain.Clip(e.Content, limit.Name)))
	}
	return thought("\n\nPlan: " + strings.Join(steps, "; ") + "\n\n")
}

// parseEvent parses the parameters of session/event of the older dialect. Tools have no IDs
// there, but at most one with the same name runs at a time, so the name serves as the ID.
func parseEvent(params json.RawMessage) (session string, it item, err error) {
	var p struct {
		sessionID
		Type, Name string
		Content    lenient[string]
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return "", nil, errors.New("an event cannot be read")
	}
	hasName := p.Name != "" && len(p.Name) <= limit.Session
	switch {
	case p.Type == "chunk" && p.Content.value == "":
	case p.Type == "chunk":
		it = text(p.Content.value)
	case p.Type == "tool_call" && hasName:
		it = toolChange{id: p.Name, title: p.Name, kind: "other", status: toolProgress}
	case p.Type == "tool_result" && hasName:
		it = toolChange{id: p.Name, status: toolCompleted}
	default:
		it = pulse{}
	}
	return p.id(), it, nil
}

// parseEnded parses the result of session/prompt.
func parseEnded(result json.RawMessage) ended {
	var r struct {
		Reason  lenient[string] `json:"stopReason"`
		Content lenient[string]
	}
	if json.Unmarshal(result, &r) != nil {
		return ended{}
	}
	return ended{reason: r.Reason.value, content: plain.Clip(r.Content.value, limit.List)}
}
