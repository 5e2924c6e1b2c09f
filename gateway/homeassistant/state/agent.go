package state

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"perch/agent"
	"perch/event"
	"perch/gateway/homeassistant/discovery"
	"perch/limit"
	"perch/plain"
)

const (
	agentLifetime   = time.Hour // after its last event
	maxQuestions    = 8         // of one agent
	shortestReading = time.Second
)

// Agent is what is known of a session without a robot: a coding agent, or a skin's chat.
type Agent struct {
	Session, ID string
	State       agent.State
	Shown       agent.Shown // agent_state as it was last published
	Seen        time.Time   // of its latest event
	Changed     bool        // Document is no longer what was published
	Published   time.Time   // of Document

	tool      event.ToolStatus
	questions []question // oldest first
	since     time.Time  // when the first of them became so
}

// question is a question that waits for an answer.
type question struct {
	id, text   string
	answerable bool // with yes or no, by its id
}

// AgentDocument is an agent's state. Every key is always present, null if unknown.
type AgentDocument struct {
	AgentState agent.Shown `json:"agent_state"`
	Session    string      `json:"session_id"`
	ToolName   *string     `json:"tool_name"` // the last
	ToolStatus *string     `json:"tool_status"`
	Question   *string     `json:"question"` // the oldest
	QuestionID *string     `json:"question_id"`
	Answerable bool        `json:"answerable"`
}

// Document returns the agent's state.
func (a *Agent) Document() AgentDocument {
	d := AgentDocument{AgentState: a.Shown, Session: plain.Clip(a.Session, limit.Name)}
	if a.tool.Name != "" {
		status := a.tool.SkinStatus()
		d.ToolName, d.ToolStatus = optional(plain.Clip(a.tool.Name, limit.Name)), &status
	}
	if len(a.questions) > 0 {
		q := a.questions[0]
		d.Question, d.QuestionID, d.Answerable = &q.text, &q.id, q.answerable
	}
	return d
}

// Ends returns when the agent is to be removed. With a question it stays longer.
func (a *Agent) Ends() time.Time {
	if len(a.questions) > 0 {
		return a.Seen.Add(24 * agentLifetime)
	}
	return a.Seen.Add(agentLifetime)
}

// QuestionShownAt reports whether the question in the document became the first at that time.
func (a *Agent) QuestionShownAt(at time.Time) bool { return a.since == at }

// UseTool sets the agent's last tool.
func (a *Agent) UseTool(t event.ToolStatus) { a.tool, a.Changed = t, true }

// Ask adds a question. It is ignored if too many wait.
func (a *Agent) Ask(id, text string, answerable bool, at time.Time) {
	if len(a.questions) == 0 {
		a.since = at
	}
	if len(a.questions) < maxQuestions {
		a.questions, a.Changed = append(a.questions, question{id, shortened(text), answerable}), true
	}
}

// Answered removes a question.
func (a *Agent) Answered(id string, at time.Time) {
	if len(a.questions) > 0 && a.questions[0].id == id {
		a.since = at // another is the first from now on
	}
	a.questions = slices.DeleteFunc(a.questions, func(q question) bool { return q.id == id })
	a.Changed = true
}

// EndTurn removes the questions that cannot be answered with yes or no: the turn does not wait for
// them any more.
func (a *Agent) EndTurn(at time.Time) {
	before := len(a.questions)
	a.questions = slices.DeleteFunc(a.questions, func(q question) bool { return !q.answerable })
	if len(a.questions) != before {
		a.since, a.Changed = at, true
	}
}

// ClearQuestions removes all questions, before they are read again.
func (a *Agent) ClearQuestions(at time.Time) { a.questions, a.since, a.Changed = nil, at, true }

// Answerable returns the question that an answer with this id is for. Without an id that is the one
// shown, unless it has been shown for too short a time to be read: then the answer was a second press
// of the button, or meant for the question before.
func (a *Agent) Answerable(id string, now time.Time) (string, error) {
	if id != "" {
		if !slices.ContainsFunc(a.questions, func(q question) bool { return q.id == id && q.answerable }) {
			return "", agent.ErrNoQuestion
		}
		return id, nil
	}
	switch {
	case len(a.questions) == 0 || !a.questions[0].answerable:
		return "", agent.ErrNoQuestion
	case now.Sub(a.since) < shortestReading:
		return "", fmt.Errorf("the question has been shown for less than %s, which is too short to read it", shortestReading)
	}
	return a.questions[0].id, nil
}

// shortened returns a text as one line that Home Assistant can store as a state.
func shortened(text string) string {
	text = plain.Line(text)
	if utf8.RuneCountInString(text) > discovery.MaxText {
		text = string([]rune(text)[:discovery.MaxText-1]) + "…"
	}
	return text
}
