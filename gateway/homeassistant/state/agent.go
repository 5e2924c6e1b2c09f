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
	agentLifetime  = time.Hour   // how long an agent is shown after its last event
	maxQuestions   = 8           // waiting questions of one agent
	minReadingTime = time.Second // a question that was shown for less time cannot have been read
)

// Agent is the state of a session without a robot: a coding agent, or a chat in a skin, which is a program that
// draws the agent on a screen.
type Agent struct {
	Session   string // name of the session
	ID        string // ID of the agent in topics
	State     agent.State
	Shown     agent.Shown // the published agent_state
	Seen      time.Time   // time of the latest event
	Changed   bool        // Document may differ from the published document
	Published time.Time   // when Document was published last

	tool      event.ToolStatus // the latest tool call
	questions []question       // oldest first
	since     time.Time        // when another question, or none, last became the first
}

// question is a question that waits for an answer.
type question struct {
	id, text   string
	answerable bool // the question can be answered with yes or no over MQTT
}

// AgentDocument is the JSON document with the state of an agent. Every key is always present. A nil pointer becomes
// null, which means that there is no such value.
type AgentDocument struct {
	AgentState agent.Shown `json:"agent_state"`
	Session    string      `json:"session_id"`
	ToolName   *string     `json:"tool_name"`   // name of the latest tool call
	ToolStatus *string     `json:"tool_status"` // "running", "completed" or "error"
	Question   *string     `json:"question"`    // text of the oldest waiting question
	QuestionID *string     `json:"question_id"`
	Answerable bool        `json:"answerable"` // the question can be answered with yes or no
}

// Document returns the document with the agent's state.
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

// Ends returns when the agent has to be removed: agentLifetime after its latest event, or 24 times as long if a
// question waits.
func (a *Agent) Ends() time.Time {
	if len(a.questions) > 0 {
		return a.Seen.Add(24 * agentLifetime)
	}
	return a.Seen.Add(agentLifetime)
}

// QuestionShownAt reports whether another question, or none, became the first at the given time.
func (a *Agent) QuestionShownAt(at time.Time) bool { return a.since == at }

// SetTool sets the latest tool call.
func (a *Agent) SetTool(t event.ToolStatus) { a.tool, a.Changed = t, true }

// AddQuestion adds a waiting question. It ignores the question if maxQuestions are waiting already.
func (a *Agent) AddQuestion(id, text string, answerable bool, at time.Time) {
	if len(a.questions) == 0 {
		a.since = at
	}
	if len(a.questions) < maxQuestions {
		a.questions, a.Changed = append(a.questions, question{id, shortened(text), answerable}), true
	}
}

// RemoveQuestion removes a question that was answered.
func (a *Agent) RemoveQuestion(id string, at time.Time) {
	if len(a.questions) > 0 && a.questions[0].id == id {
		a.since = at // the next question becomes the first
	}
	a.questions = slices.DeleteFunc(a.questions, func(q question) bool { return q.id == id })
	a.Changed = true
}

// EndTurn removes the questions that are not answerable, because they belong to the turn that has ended.
func (a *Agent) EndTurn(at time.Time) {
	if len(a.questions) > 0 && !a.questions[0].answerable {
		a.since = at // another question becomes the first
	}
	old := len(a.questions)
	a.questions = slices.DeleteFunc(a.questions, func(q question) bool { return !q.answerable })
	a.Changed = a.Changed || len(a.questions) != old
}

// ClearQuestions removes all questions.
func (a *Agent) ClearQuestions(at time.Time) { a.questions, a.since, a.Changed = nil, at, true }

// FindQuestion returns the ID of the question that an answer is for. An answer without an ID is for the first question,
// which is shown. FindQuestion returns agent.ErrNoQuestion if no such question waits or if the question is
// not answerable. It returns another error if an answer without an ID comes within minReadingTime, because that answer
// was probably for the previous question.
func (a *Agent) FindQuestion(id string, now time.Time) (string, error) {
	if id != "" {
		if !slices.ContainsFunc(a.questions, func(q question) bool { return q.id == id && q.answerable }) {
			return "", agent.ErrNoQuestion
		}
		return id, nil
	}
	switch {
	case len(a.questions) == 0 || !a.questions[0].answerable:
		return "", agent.ErrNoQuestion
	case now.Sub(a.since) < minReadingTime:
		return "", fmt.Errorf("the question has been shown for less than %s, which is too short to read it", minReadingTime)
	}
	return a.questions[0].id, nil
}

// shortened returns a text as one line of at most discovery.MaxText characters.
func shortened(text string) string {
	text = plain.Line(text)
	if utf8.RuneCountInString(text) > discovery.MaxText {
		text = string([]rune(text)[:discovery.MaxText-1]) + "…"
	}
	return text
}
