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

// Bounds of the remembered sessions.
const (
	mostSessions = 200
	mostTools    = 64 // running in a run
)

// agentEvent is an event of a session in the gateway's shape.
type agentEvent struct {
	RunID   string `json:"runId"`
	Seq     int    `json:"seq"` // within the run, from 1
	Stream  string `json:"stream"`
	TS      int64  `json:"ts"` // Unix milliseconds
	Session string `json:"sessionKey"`
	Data    any    `json:"data"`
}

// lifecycle is the data of the stream lifecycle.
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
	Meta   string `json:"meta,omitempty"` // the tool's input or result
	Failed bool   `json:"isError,omitempty"`
}

// assistantEvent is the data of the stream assistant: all text of the run, and the new part.
type assistantEvent struct {
	Text    string `json:"text"`
	Delta   string `json:"delta"`
	Replace bool   `json:"replace,omitempty"` // Text no longer includes earlier text
}

// errorEvent is the data of the stream error.
type errorEvent struct {
	Error string `json:"error"`
}

// run is a turn in the gateway's shape. It begins and ends with a lifecycle event.
type run struct {
	id    string
	key   string // of its session
	seq   int
	text  string
	began int64
	tools map[string]bool // running
}

// session is a session that a client knows.
type session struct {
	key  string
	at   int64  // Unix milliseconds of the last frame
	nth  int    // number of the last frame, among those of all sessions
	run  *run   // nil between two turns
	text string // id of the last run that belonged to a client's text
}

// runs converts frames to agent events for one connection.
type runs struct {
	name     namer
	frames   int                 // so far
	sessions map[string]*session // by robot, or else by session

	now    int64        // Unix milliseconds of the current frame
	events []agentEvent // for it
}

// namer returns the key of a session, and the id of the run that begins in it if that belongs
// to a client's text, or "". last is the id of the previous run that did.
type namer func(id string, robot device.ID, last string) (key, run string)

func newRuns(name namer) *runs { return &runs{name: name, sessions: map[string]*session{}} }

// handleFrame returns the events for a frame.
func (r *runs) handleFrame(f *feed.Frame, now time.Time) []agentEvent {
	place := cmp.Or(string(f.Robot), f.Session)
	s := r.sessions[place]
	if place == "" || s == nil && isIdle(f.Body) {
		return nil
	}
	r.now, r.events = now.UnixMilli(), nil
	if s == nil {
		r.makeRoom()
		s = &session{}
		r.sessions[place] = s
	}
	r.frames++
	s.at, s.nth = r.now, r.frames
	switch b := f.Body.(type) {
	case feed.State:
		r.state(s, f, b)
	case feed.Tool:
		r.tool(s, f, b)
	case feed.Said:
		r.sentence(s, f, b)
	}
	return r.events
}

func isIdle(body any) bool {
	s, is := body.(feed.State)
	return is && s.State == agent.Idle
}

// state begins, continues or ends a run.
func (r *runs) state(s *session, f *feed.Frame, b feed.State) {
	switch b.State {
	case agent.Thinking, agent.Notification: // an open question is part of its turn
		r.open(s, f)
	case agent.Working, agent.Juggling:
		r.open(s, f)
		if len(s.run.tools) == 0 { // an agent that does not report its tools
			name := "agent"
			if b.Detail != nil && b.Detail.Tool != "" {
				name = b.Detail.Tool
			}
			r.emit(s.run, "tool", toolEvent{Phase: "update", Name: name, CallID: s.run.id})
		}
	case agent.Speaking:
		r.open(s, f)
		if s.run.text == "" { // the text follows with its sound
			r.emit(s.run, "assistant", assistantEvent{})
		}
	case agent.Failed:
		r.endRun(s, "the turn failed; the log of the appliance says why")
	default:
		r.endRun(s, "")
	}
}

func (r *runs) tool(s *session, f *feed.Frame, b feed.Tool) {
	e := toolEvent{Phase: "start", Name: b.Name, CallID: b.ID, Meta: b.Content, Failed: b.Status == "error"}
	switch {
	case b.Status == "running":
		r.open(s, f)
		if len(s.run.tools) < mostTools {
			s.run.tools[b.ID] = true
		}
	case s.run == nil || !s.run.tools[b.ID]:
		return // its start was not sent
	default:
		delete(s.run.tools, b.ID)
		e.Phase = "result"
	}
	r.emit(s.run, "tool", e)
}

func (r *runs) sentence(s *session, f *feed.Frame, b feed.Said) {
	r.open(s, f)
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
	r.emit(s.run, "assistant", e)
}

// open begins a run in a session that has none.
func (r *runs) open(s *session, f *feed.Frame) {
	if s.run != nil {
		return
	}
	s.run = &run{began: r.now, tools: map[string]bool{}}
	s.key, s.run.id = r.name(f.Session, f.Robot, s.text)
	if s.run.id == "" {
		s.run.id = rand.Text()
	} else {
		s.text = s.run.id
	}
	s.run.key = s.key
	r.emit(s.run, "lifecycle", lifecycle{Phase: "start", StartedAt: r.now})
}

// endRun ends the current run of a session; failed is the reason if it failed.
func (r *runs) endRun(s *session, failed string) {
	if s.run == nil {
		return
	}
	e := lifecycle{Phase: "end", StartedAt: s.run.began, EndedAt: r.now, Error: failed}
	if failed != "" {
		e.Phase = "error"
		r.emit(s.run, "error", errorEvent{failed})
	}
	r.emit(s.run, "lifecycle", e)
	s.run = nil
}

func (r *runs) emit(of *run, stream string, data any) {
	of.seq++
	r.events = append(r.events, agentEvent{of.id, of.seq, stream, r.now, of.key, data})
}

// makeRoom drops the session that was idle for longest if there are too many.
func (r *runs) makeRoom() {
	if len(r.sessions) < mostSessions {
		return
	}
	stalest := limit.First(r.sessions, func(a, b *session) int { return a.nth - b.nth })
	r.endRun(r.sessions[stalest], "")
	delete(r.sessions, stalest)
}

// latest returns the sessions that had a turn, the latest first.
func (r *runs) latest() (all []*session) {
	for _, s := range r.sessions {
		if s.key != "" {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *session) int { return b.nth - a.nth })
	return all
}
