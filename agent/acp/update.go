package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"perch/limit"
	"perch/plain"
)

// item is an event of a turn: text, toolChange, permission, pulse or ended. The set
// is closed.
type item interface{ isItem() }

// text is spoken text of the agent.
type text string

// toolChange is an update of a tool. Empty fields have not changed.
type toolChange struct {
	id, title, kind, status string
	name                    string // the tool's real name, if the agent reports it
	agent                   bool   // the tool is another agent
}

// pulse is a sign of life: a thought, a plan, or an unknown update.
type pulse struct{}

// ended is the answer to the prompt.
type ended struct {
	reason  string // of protocol version 1
	content string // the whole answer, of agents that do not stream it
	err     error
}

func (text) isItem()       {}
func (toolChange) isItem() {}
func (permission) isItem() {}
func (pulse) isItem()      {}
func (ended) isItem()      {}

// Tool states in the protocol's words.
const (
	toolPending   = "pending"
	toolProgress  = "in_progress"
	toolCompleted = "completed"
	toolFailed    = "failed"
)

// sessionID is a session id in either dialect's spelling.
type sessionID struct {
	SessionID string `json:"sessionId"`
	Old       string `json:"session_id"`
}

func (s sessionID) id() string { return cmp.Or(s.SessionID, s.Old) }

// lenient is a field that may have any type; one of an unexpected type is zero.
type lenient[T any] struct{ value T }

// UnmarshalJSON accepts any value.
func (l *lenient[T]) UnmarshalJSON(data []byte) error {
	var v T
	if json.Unmarshal(data, &v) == nil {
		l.value = v
	}
	return nil
}

// toolCall is a tool as updates and permissions describe it.
type toolCall struct {
	ID     string `json:"toolCallId"`
	Title  string `json:"title"`
	Kind   string `json:"kind"`
	Status string `json:"status"`
	// RawInput shows whether a tool is another agent.
	RawInput lenient[struct {
		SubAgent string `json:"subagent_type"`
	}] `json:"rawInput"`
	Meta lenient[toolsMeta] `json:"_meta"`
}

// toolsMeta is an extension of claude-agent-acp: the real name of its tool, and the
// tool within which another agent speaks.
type toolsMeta struct {
	Claude struct {
		Tool   string `json:"toolName"`
		Parent string `json:"parentToolUseId"`
	} `json:"claudeCode"`
}

// change returns the update. It may wait for long, so it is limited to what is shown.
func (t toolCall) change() toolChange {
	kind := t.Kind
	if kind != "" && !slices.Contains(kinds(), kind) {
		kind = "other"
	}
	status := t.Status
	if !slices.Contains([]string{toolPending, toolProgress, toolCompleted, toolFailed}, status) {
		status = ""
	}
	name := t.Meta.value.Claude.Tool
	sub := t.RawInput.value.SubAgent != "" || name == "Task" || name == "Agent"
	return toolChange{id: plain.Clip(t.ID, limit.Session), title: plain.Clip(t.Title, mostRead), kind: kind, status: status,
		name: plain.Clip(name, limit.Name), agent: sub}
}

// parseUpdate parses the parameters of session/update. The item is nil if nothing
// happened.
func parseUpdate(params json.RawMessage) (session string, it item, err error) {
	var p struct {
		sessionID
		Update struct {
			toolCall
			Is      string                               `json:"sessionUpdate"`
			Content lenient[struct{ Type, Text string }] // tool calls have a list instead
		} `json:"update"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return "", nil, errors.New("an update cannot be read")
	}
	u, said := p.Update, ""
	if u.Content.value.Type == "text" {
		said = u.Content.value.Text
	}
	switch chunk := u.Is == "agent_message_chunk" || u.Is == "agent_thought_chunk"; {
	case chunk && said == "": // an empty thought is not a sign of life
	case u.Is == "agent_message_chunk" && u.Meta.value.Claude.Parent == "":
		it = text(said)
	case u.Is == "tool_call" || u.Is == "tool_call_update":
		if u.ID == "" || len(u.ID) > limit.Session {
			return "", nil, errors.New("a tool call has no id")
		}
		it = u.change()
	default:
		it = pulse{} // thoughts and messages of sub-agents are not spoken
	}
	return p.id(), it, nil
}

// parseEvent parses the parameters of session/event, of the older dialect. Its tools
// have no ids: at most one of a name runs at a time.
func parseEvent(params json.RawMessage) (session string, it item, err error) {
	var p struct {
		sessionID
		Type, Name string
		Content    lenient[string]
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return "", nil, errors.New("an event cannot be read")
	}
	named := p.Name != "" && len(p.Name) <= limit.Session
	switch {
	case p.Type == "chunk" && p.Content.value == "":
	case p.Type == "chunk":
		it = text(p.Content.value)
	case p.Type == "tool_call" && named:
		it = toolChange{id: p.Name, title: p.Name, kind: "other", status: toolProgress}
	case p.Type == "tool_result" && named:
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
