package feed

import (
	"cmp"
	"slices"
	"time"

	"perch/agent"
	"perch/event"
	"perch/limit"
	"perch/plain"
)

// view is a session as it was sent to viewers.
type view struct {
	state  agent.State // the board's latest
	states [2]shown    // as last sent: in seven states, and in ten
	tools  []item      // running, in order of their start
	asked  []item      // open questions
	felt   event.Emotion
	feltAt event.Envelope
	faces  map[agent.Vocabulary]*Frame
}

// shown is a state that was sent.
type shown struct {
	state  agent.Shown
	detail StateDetail
	frame  *Frame
}

// item is a running tool or an open question.
type item struct {
	id, name string // a question has no name
	frame    *Frame
}

// index returns the index of the seven or of all ten states.
func index(all bool) int {
	if all {
		return 1
	}
	return 0
}

// isVisible reports whether a session shows something or is open.
func isVisible(s agent.State, now time.Time) bool {
	due := s.ExpiresAt()
	return s.Talking || s.At(now) != agent.Idle || !due.IsZero() && due.After(now)
}

// newView returns a view without sent frames, or nil if there is nothing to send or to
// remember. A robot at rest is not sent.
func newView(s agent.State, now time.Time) *view {
	if isVisible(s, now) {
		return &view{state: s}
	}
	if s.Robot == "" {
		return nil
	}
	return &view{state: s, states: [2]shown{{state: agent.Idle}, {state: agent.Idle}}}
}

// news returns the frame of a state that was not sent yet, or nil.
func (v *view) news(all bool, at time.Time) *Frame {
	last := &v.states[index(all)]
	now := shown{state: ShownTo(all, v.state.At(at))}
	switch v.state.At(at) {
	case agent.Juggling:
		now.detail.SubAgents = v.state.SubAgents
		fallthrough
	case agent.Working:
		if n := len(v.tools); n > 0 {
			now.detail.Tool = plain.Clip(v.tools[n-1].name, limit.Name)
		}
	}
	if last.state == now.state && last.detail == now.detail {
		return nil
	}
	f := State{Type: KindState, TS: at.Unix(), State: now.state, Session: v.state.Session, Robot: v.state.Robot}
	if now.state == agent.Working || now.state == agent.Juggling {
		f.Detail = &now.detail
	}
	now.frame = newFrame(KindState, f.Session, f.Robot, "s "+f.Session, f)
	*last = now
	return now.frame
}

// tool records that a tool is running, or has ended.
func (v *view) tool(t event.ToolStatus, made *Frame) {
	v.tools = slices.DeleteFunc(v.tools, func(one item) bool { return one.id == t.ID })
	if t.Status == event.ToolRunning {
		v.tools = append(v.tools, item{t.ID, t.Name, made})
	}
}

// feel records a face. It reports whether it is another one, and whether at least the
// model's word for it is.
func (v *view) feel(e event.Envelope, felt event.Emotion) (another, renamed bool) {
	another = v.felt.Name != felt.Name || v.felt.Intensity != felt.Intensity
	renamed = v.felt.Tag != felt.Tag
	switch {
	case another:
		v.felt, v.feltAt, v.faces = felt, e, map[agent.Vocabulary]*Frame{}
	case renamed:
		v.felt.Tag = felt.Tag
		delete(v.faces, agent.VocabularyVerbatim)
	}
	return another, renamed
}

// face returns the frame of the latest face in a vocabulary, or nil if there was none.
func (v *view) face(words agent.Vocabulary, table *agent.Words) *Frame {
	if v.felt.Name == "" {
		return nil
	}
	made := v.faces[words]
	if made == nil {
		f := Face{Type: KindFace, TS: v.feltAt.At.Unix(), Session: v.feltAt.Session, Robot: v.feltAt.Robot,
			Tag: table.Tag(words, v.felt.Name, v.felt.Tag), Intensity: cmp.Or(v.felt.Intensity, 1)}
		made = newFrame(KindFace, f.Session, f.Robot, "f "+f.Session, f)
		v.faces[words] = made
	}
	return made
}
