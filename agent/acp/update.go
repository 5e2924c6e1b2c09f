package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"perch/limit"
	"perch/plain"
)

// item is something that happens within a turn: text, toolChange, permission,
// pulse or ended. The set is closed.
type item interface{ isItem() }

// text is what the agent says.
type text string

// toolChange is news of a tool. What is empty has not changed.
type toolChange struct {
	id, title, kind, status string
	name                    string // the agent's own, where its program names it
	agent                   bool   // another agent, at work on its own
}

// pulse is a sign of life: a thought, a plan, and what we do not know.
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

// Where a tool stands, in the protocol's words.
const (
	toolPending   = "pending"
	toolProgress  = "in_progress"
	toolCompleted = "completed"
	toolFailed    = "failed"
)

// sessionID is in either dialect's spelling.
type sessionID struct {
	SessionID string `json:"sessionId"`
	Old       string `json:"session_id"`
}

func (s sessionID) id() string {
	return cmp.Or(s.SessionID, s.Old)
}

// lenient is a field that may be of any type: one of another type is empty.
type lenient[T any] struct{ value T }

// UnmarshalJSON takes anything.
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
	// RawInput shows of a tool that it is another agent.
	RawInput lenient[struct {
		SubAgent string `json:"subagent_type"`
	}] `json:"rawInput"`
	Meta lenient[toolsMeta] `json:"_meta"`
}

// toolsMeta is what claude-agent-acp sends beside the protocol: the name its
// tool really has, and the tool within which another agent speaks.
type toolsMeta struct {
	Claude struct {
		Tool   string `json:"toolName"`
		Parent string `json:"parentToolUseId"`
	} `json:"claudeCode"`
}

// change is the news in it. It may wait for long, so it holds no more than is
// shown.
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

// parseUpdate reads the parameters of session/update. The item is nil where
// nothing has happened.
func parseUpdate(params json.RawMessage) (session string, it item, err error) {
	var p struct {
		sessionID
		Update struct {
			toolCall
			Is      string  `json:"sessionUpdate"`
			Content content `json:"content"`
		} `json:"update"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return "", nil, errors.New("an update cannot be read")
	}
	u := p.Update
	switch {
	case u.Is == "agent_message_chunk" && u.Meta.value.Claude.Parent == "":
		it = words(string(u.Content))
	case u.Is == "agent_message_chunk" || u.Is == "agent_thought_chunk":
		if words(string(u.Content)) == nil {
			break // an agent that thinks of nothing shows no life
		}
		it = pulse{}
	case u.Is == "tool_call" || u.Is == "tool_call_update":
		if u.ID == "" || len(u.ID) > limit.Session {
			return "", nil, errors.New("a tool call has no id")
		}
		it = u.change()
	default:
		it = pulse{} // thoughts are not spoken, nor what an agent's agent says to it
	}
	return p.id(), it, nil
}

// words are text, and nothing at all where there is none.
func words(said string) item {
	if said == "" {
		return nil
	}
	return text(said)
}

// content is the text of a content block, and empty for every other kind of
// block, and for the list that tool calls have in its place.
type content string

// UnmarshalJSON takes anything.
func (c *content) UnmarshalJSON(data []byte) error {
	var block struct{ Type, Text string }
	if json.Unmarshal(data, &block) == nil && block.Type == "text" {
		*c = content(block.Text)
	}
	return nil
}

// parseEvent reads the parameters of session/event, of the older dialect.
// Tools have no ids there: one of a name runs at a time.
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
	case p.Type == "chunk":
		it = words(p.Content.value)
	case p.Type == "tool_call" && named:
		it = toolChange{id: p.Name, title: p.Name, kind: "other", status: toolProgress}
	case p.Type == "tool_result" && named:
		it = toolChange{id: p.Name, status: toolCompleted}
	default:
		it = pulse{}
	}
	return p.id(), it, nil
}

// parseEnded reads the result of session/prompt.
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
