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

// view is one session as viewers were shown it.
type view struct {
	state  agent.State // the latest of the board's
	states [2]shown    // as it was last sent: in seven states, and in ten
	tools  []tool      // at work, in the order they began
	asked  []asked     // questions that wait
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

type tool struct {
	id, name string
	frame    *Frame
}

type asked struct {
	id    string
	frame *Frame
}

// index is where a view keeps what it sent in seven states, or in ten.
func index(all bool) int {
	if all {
		return 1
	}
	return 0
}

// live reports whether there is something to show of a session: it shows
// something, or it is open.
func live(s agent.State, now time.Time) bool {
	due := s.Due()
	return s.Talking || s.At(now) != agent.Idle || !due.IsZero() && due.After(now)
}

// newView is a view of which nothing was sent, or nil where there is nothing to
// send and nothing to remember. A robot at rest is not sent.
func newView(s agent.State, now time.Time) *view {
	v := &view{state: s}
	switch {
	case live(s, now):
	case s.Robot == "":
		return nil
	default:
		v.states = [2]shown{{state: agent.Idle}, {state: agent.Idle}}
	}
	return v
}

// news is the frame of a state that was not sent yet, or nil.
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

// tool notes one at work, or that it is done.
func (v *view) tool(t event.ToolStatus, made *Frame) {
	v.tools = slices.DeleteFunc(v.tools, func(one tool) bool { return one.id == t.ID })
	if t.Status == event.ToolRunning {
		v.tools = append(v.tools, tool{t.ID, t.Name, made})
	}
}

// feel notes a face, and reports whether it is another one, or is at least
// called something else by the model.
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

// face is the frame of the face that was shown last, in a vocabulary, or nil
// where none was.
func (v *view) face(words agent.Vocabulary, table *agent.Words) *Frame {
	if v.felt.Name == "" {
		return nil
	}
	made := v.faces[words]
	if made == nil {
		f := Face{Type: KindFace, TS: v.feltAt.At.Unix(), Session: v.feltAt.Session, Robot: v.feltAt.Robot,
			Tag: table.Tag(words, v.felt.Name, v.felt.Tag), Intensity: v.felt.Intensity}
		f.Intensity = cmp.Or(f.Intensity, 1)
		made = newFrame(KindFace, f.Session, f.Robot, "f "+f.Session, f)
		v.faces[words] = made
	}
	return made
}
