package openclaw

import (
	"cmp"
	"crypto/rand"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/avatar/feed"
	"perch/limit"
)

// Bounds of what is known of sessions.
const (
	mostSessions = 200
	mostTools    = 64 // of a run, that have not ended
)

// agentEvent is what a session does, as the gateway tells it.
type agentEvent struct {
	RunID   string `json:"runId"`
	Seq     int    `json:"seq"` // of the run, from 1
	Stream  string `json:"stream"`
	TS      int64  `json:"ts"` // ms since 1970
	Session string `json:"sessionKey"`
	Data    any    `json:"data"`
}

// lifecycle is the data of the stream of that name.
type lifecycle struct {
	Phase     string `json:"phase"` // start, end or error
	StartedAt int64  `json:"startedAt"`
	EndedAt   int64  `json:"endedAt,omitempty"`
	Error     string `json:"error,omitempty"`
}

// toolEvent is the data of the stream tool.
type toolEvent struct {
	Phase  string `json:"phase"` // start, update or result
	Name   string `json:"name"`
	CallID string `json:"toolCallId"`
	Meta   string `json:"meta,omitempty"` // what it works on, or what came of it
	Failed bool   `json:"isError,omitempty"`
}

// assistantEvent is the data of the stream assistant: all that was said in this run, and
// what is new of it.
type assistantEvent struct {
	Text    string `json:"text"`
	Delta   string `json:"delta"`
	Replace bool   `json:"replace,omitempty"` // the text before does not count any more
}

// errorEvent is the data of the stream error.
type errorEvent struct {
	Error string `json:"error"`
}

// Run is what a turn is to a client: it begins with its lifecycle and ends with it.
type run struct {
	id    string
	key   string // of its session
	seq   int
	text  string
	began int64
	tools map[string]bool // that are at work
}

// session is the state of a session that a client knows.
type session struct {
	key  string
	at   int64  // when something last happened, ms since 1970
	nth  int    // of all frames, the last of this session
	run  *run   // nil between two turns
	text string // the run of a client's text that was told last
}

// runs fold the frames of sessions to the runs of the protocol. They belong to one
// connection.
type runs struct {
	name     namer
	frames   int                 // so far
	sessions map[string]*session // by robot, or by session without one
}

// namer gives a session its key, and the run that begins in it its id, which is empty where
// no client's text has begun it. told is that of the last that was one's.
type namer func(id string, robot device.ID, told string) (key, run string)

func newRuns(name namer) *runs { return &runs{name: name, sessions: map[string]*session{}} }

// handleFrame returns the events for a frame.
func (r *runs) handleFrame(f *feed.Frame, now time.Time) (told []agentEvent) {
	place := cmp.Or(string(f.Robot), f.Session)
	if place == "" {
		return nil
	}
	at := now.UnixMilli()
	s := r.sessions[place]
	if s == nil {
		if !begins(f.Body) {
			return nil
		}
		told = r.makeRoom(at)
		s = &session{}
		r.sessions[place] = s
	}
	r.frames++
	s.at, s.nth = at, r.frames
	switch b := f.Body.(type) {
	case feed.State:
		return append(told, r.state(s, b, at)...)
	case feed.Tool:
		return append(told, r.tool(s, b, at)...)
	case feed.Said:
		return append(told, r.sentence(s, b, at)...)
	}
	return told
}

// begins reports whether a session's first frame makes it known: what is at rest is not.
func begins(body any) bool {
	s, is := body.(feed.State)
	return !is || s.State != agent.Idle
}

// state tells that a run begins, what it does, or that it ends.
func (r *runs) state(s *session, b feed.State, at int64) (told []agentEvent) {
	switch b.State {
	case agent.Thinking, agent.Notification: // a question that waits is part of its turn
		return r.open(s, b.Session, b.Robot, at)
	case agent.Working, agent.Juggling:
		told = r.open(s, b.Session, b.Robot, at)
		if len(s.run.tools) == 0 { // an agent that says only that it works
			name := "agent"
			if b.Detail != nil && b.Detail.Tool != "" {
				name = b.Detail.Tool
			}
			told = append(told, s.run.newEvent("tool", at, toolEvent{Phase: "update", Name: name, CallID: s.run.id}))
		}
		return told
	case agent.Speaking:
		told = r.open(s, b.Session, b.Robot, at)
		if s.run.text == "" { // what is said comes with its sound
			told = append(told, s.run.newEvent("assistant", at, assistantEvent{}))
		}
		return told
	case agent.Failed:
		return s.endRun(at, "the turn failed; the log of the appliance says why")
	}
	return s.endRun(at, "")
}

func (r *runs) tool(s *session, b feed.Tool, at int64) (told []agentEvent) {
	e := toolEvent{Phase: "start", Name: b.Name, CallID: b.ID, Meta: b.Content, Failed: b.Status == "error"}
	if b.Status == "running" {
		told = r.open(s, b.Session, b.Robot, at)
		if len(s.run.tools) < mostTools {
			s.run.tools[b.ID] = true
		}
		return append(told, s.run.newEvent("tool", at, e))
	}
	if s.run == nil || !s.run.tools[b.ID] {
		return nil // nobody knows of it
	}
	delete(s.run.tools, b.ID)
	e.Phase = "result"
	return []agentEvent{s.run.newEvent("tool", at, e)}
}

func (r *runs) sentence(s *session, b feed.Said, at int64) (told []agentEvent) {
	told = r.open(s, b.Session, b.Robot, at)
	e := assistantEvent{Delta: b.Text}
	switch {
	case s.run.text == "":
	case len(s.run.text)+len(b.Text) > limit.Question:
		s.run.text, e.Replace = "", true
	default:
		e.Delta = " " + b.Text
	}
	s.run.text += e.Delta
	e.Text = s.run.text
	return append(told, s.run.newEvent("assistant", at, e))
}

// open begins a run, unless one is under way.
func (r *runs) open(s *session, id string, robot device.ID, at int64) []agentEvent {
	if s.run != nil {
		return nil
	}
	s.run = &run{began: at, tools: map[string]bool{}}
	s.key, s.run.id = r.name(id, robot, s.text)
	if s.run.id == "" {
		s.run.id = rand.Text()
	} else {
		s.text = s.run.id
	}
	s.run.key = s.key
	return []agentEvent{s.run.newEvent("lifecycle", at, lifecycle{Phase: "start", StartedAt: at})}
}

// endRun ends the current run; failed is the reason if it failed.
func (s *session) endRun(at int64, failed string) (told []agentEvent) {
	if s.run == nil {
		return nil
	}
	e := lifecycle{Phase: "end", StartedAt: s.run.began, EndedAt: at, Error: failed}
	if failed != "" {
		e.Phase = "error"
		told = append(told, s.run.newEvent("error", at, errorEvent{failed}))
	}
	told = append(told, s.run.newEvent("lifecycle", at, e))
	s.run = nil
	return told
}

func (r *run) newEvent(stream string, at int64, data any) agentEvent {
	r.seq++
	return agentEvent{r.id, r.seq, stream, at, r.key, data}
}

// makeRoom forgets the session that has done nothing for the longest, where there are too
// many.
func (r *runs) makeRoom(at int64) []agentEvent {
	if len(r.sessions) < mostSessions {
		return nil
	}
	stalest := limit.First(r.sessions, func(a, b *session) int { return a.nth - b.nth })
	defer delete(r.sessions, stalest)
	return r.sessions[stalest].endRun(at, "")
}

// latest are the sessions in which there was a turn, the latest first.
func (r *runs) latest() (all []*session) {
	for _, s := range r.sessions {
		if s.key != "" {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *session) int { return b.nth - a.nth })
	return all
}
