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

// Maximum numbers of recorded sessions and tools.
const (
	maxSessions = 200
	maxTools    = 64 // running tools of one run
)

// agentEvent is an event about a session.
type agentEvent struct {
	RunID   string `json:"runId"`
	Seq     int    `json:"seq"` // number of the event in the run, from 1
	Stream  string `json:"stream"`
	TS      int64  `json:"ts"` // Unix milliseconds
	Session string `json:"sessionKey"`
	Data    any    `json:"data"`
}

// lifecycle is the data of an agentEvent of the stream lifecycle.
type lifecycle struct {
	Phase     string `json:"phase"` // start, end or error
	StartedAt int64  `json:"startedAt"`
	EndedAt   int64  `json:"endedAt,omitempty"`
	Error     string `json:"error,omitempty"`
}

// toolEvent is the data of an agentEvent of the stream tool.
type toolEvent struct {
	Phase  string `json:"phase"` // start, update or result
	Name   string `json:"name"`
	CallID string `json:"toolCallId"`
	Meta   string `json:"meta,omitempty"` // the tool's input or result
	Failed bool   `json:"isError,omitempty"`
}

// assistantEvent is the data of an agentEvent of the stream assistant.
type assistantEvent struct {
	Text    string `json:"text"`              // text of the run so far
	Delta   string `json:"delta"`             // the new part of Text
	Replace bool   `json:"replace,omitempty"` // whether Delta replaces the earlier text, because Text became too long
}

// errorEvent is the data of an agentEvent of the stream error.
type errorEvent struct {
	Error string `json:"error"`
}

// run is a turn, which the gateway calls a run. It begins and ends with a lifecycle event.
type run struct {
	id      string
	key     string          // key of the session
	seq     int             // number of the latest event
	text    string          // text of the reply so far
	started int64           // Unix milliseconds
	tools   map[string]bool // IDs of the running tools
}

// session is a session that the feed has sent frames about.
type session struct {
	key     string // key of the session; empty before the first run
	at      int64  // time of the latest frame, in Unix milliseconds
	nth     int    // number of the latest frame, counted in all sessions
	run     *run   // nil between runs
	textRun string // ID of the latest run that was the answer to a client's text, or ""
}

// runs converts the frames of the feed to agent events for one connection.
type runs struct {
	nameRun  runNamer
	frames   int                 // number of frames so far
	sessions map[string]*session // key: robot ID, or session ID if there is no robot

	now    int64        // time of the current frame, in Unix milliseconds
	events []agentEvent // events for the current frame
}

// runNamer returns the key of a session, and the ID for the run that begins in the session. The ID
// is empty unless the run is the answer to a client's text. last is the ID of the latest run in
// the session that answered a text; that ID is not returned again.
type runNamer func(session string, robot device.ID, last string) (key, run string)

func newRuns(nameRun runNamer) *runs { return &runs{nameRun: nameRun, sessions: map[string]*session{}} }

// handleFrame returns the events for a frame. now is the time of the events.
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
		r.handleState(s, f, b)
	case feed.Tool:
		r.handleTool(s, f, b)
	case feed.Said:
		r.handleSentence(s, f, b)
	}
	return r.events
}

// isIdle reports whether the body of a frame is the state idle.
func isIdle(body any) bool {
	s, ok := body.(feed.State)
	return ok && s.State == agent.Idle
}

// handleState begins, continues or ends a run.
func (r *runs) handleState(s *session, f *feed.Frame, b feed.State) {
	switch b.State {
	case agent.Thinking, agent.Notification: // a turn continues while its question is open
		r.beginRun(s, f)
	case agent.Working, agent.Juggling:
		r.beginRun(s, f)
		if len(s.run.tools) == 0 { // no feed.Tool reports the tools of this agent
			name := "agent"
			if b.Detail != nil && b.Detail.Tool != "" {
				name = b.Detail.Tool
			}
			r.emit(s.run, "tool", toolEvent{Phase: "update", Name: name, CallID: s.run.id})
		}
	case agent.Speaking:
		r.beginRun(s, f)
		if s.run.text == "" { // announce the reply; the first sentence follows in a feed.Said
			r.emit(s.run, "assistant", assistantEvent{})
		}
	case agent.Failed:
		r.endRun(s, "the turn failed; the log of the appliance says why")
	default:
		r.endRun(s, "")
	}
}

// handleTool adds an event for the start or the end of a tool call.
func (r *runs) handleTool(s *session, f *feed.Frame, b feed.Tool) {
	e := toolEvent{Phase: "start", Name: b.Name, CallID: b.ID, Meta: b.Content, Failed: b.Status == "error"}
	switch {
	case b.Status == "running":
		r.beginRun(s, f)
		if len(s.run.tools) == maxTools && !s.run.tools[b.ID] {
			return
		}
		s.run.tools[b.ID] = true
	case s.run == nil || !s.run.tools[b.ID]:
		return // the start of the call was not sent
	default:
		delete(s.run.tools, b.ID)
		e.Phase = "result"
	}
	r.emit(s.run, "tool", e)
}

// handleSentence adds a sentence to the text of the run, and adds an event. The text restarts with this
// sentence if it would exceed limit.Question bytes.
func (r *runs) handleSentence(s *session, f *feed.Frame, b feed.Said) {
	r.beginRun(s, f)
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

// beginRun begins a run unless the session already has one.
func (r *runs) beginRun(s *session, f *feed.Frame) {
	if s.run != nil {
		return
	}
	s.run = &run{started: r.now, tools: map[string]bool{}}
	s.key, s.run.id = r.nameRun(f.Session, f.Robot, s.textRun)
	if s.run.id == "" {
		s.run.id = rand.Text()
	} else {
		s.textRun = s.run.id
	}
	s.run.key = s.key
	r.emit(s.run, "lifecycle", lifecycle{Phase: "start", StartedAt: r.now})
}

// endRun ends the current run of a session, if any. failure is the error of a failed run, or "".
func (r *runs) endRun(s *session, failure string) {
	if s.run == nil {
		return
	}
	e := lifecycle{Phase: "end", StartedAt: s.run.started, EndedAt: r.now, Error: failure}
	if failure != "" {
		e.Phase = "error"
		r.emit(s.run, "error", errorEvent{failure})
	}
	r.emit(s.run, "lifecycle", e)
	s.run = nil
}

// emit appends an event of a run to r.events.
func (r *runs) emit(u *run, stream string, data any) {
	u.seq++
	r.events = append(r.events, agentEvent{u.id, u.seq, stream, r.now, u.key, data})
}

// makeRoom does nothing unless maxSessions sessions are recorded. It then removes the session whose
// latest frame is oldest, and ends the session's run.
func (r *runs) makeRoom() {
	if len(r.sessions) < maxSessions {
		return
	}
	oldest := limit.First(r.sessions, func(a, b *session) int { return a.nth - b.nth })
	r.endRun(r.sessions[oldest], "")
	delete(r.sessions, oldest)
}

// recent returns the sessions that had a run, latest first.
func (r *runs) recent() (sessions []*session) {
	for _, s := range r.sessions {
		if s.key != "" {
			sessions = append(sessions, s)
		}
	}
	slices.SortFunc(sessions, func(a, b *session) int { return b.nth - a.nth })
	return sessions
}
