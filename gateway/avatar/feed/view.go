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

// view is what viewers have been sent about a session.
type view struct {
	state     agent.State   // latest state from the board
	states    [2]shownState // last sent states: of the RFC's seven, and of all ten (see index)
	tools     []item        // running tools, in the order of their start
	questions []item        // open questions
	emotion   event.Emotion // latest face; its Name is empty if there was none
	emotionAt event.Envelope
	faces     map[agent.Vocabulary]*Frame // frames of emotion that have been made
}

// shownState is a state that was sent to viewers.
type shownState struct {
	state  agent.Shown
	detail StateDetail
	frame  *Frame
}

// item is a running tool or an open question.
type item struct {
	id, name string // name is empty for a question
	frame    *Frame
}

// index returns the index in view.states: 0 for the RFC's seven states, 1 for all ten.
func index(allStates bool) int {
	if allStates {
		return 1
	}
	return 0
}

// isVisible reports whether a session is not idle, has a conversation going on, or has a
// state that expires after now.
func isVisible(s agent.State, now time.Time) bool {
	due := s.ExpiresAt()
	return s.Talking || s.At(now) != agent.Idle || !due.IsZero() && due.After(now)
}

// newView returns the view of a new session. It returns nil for an invisible session without a
// robot, which needs no view. The view of an invisible session of a robot counts as already
// shown idle.
func newView(s agent.State, now time.Time) *view {
	if isVisible(s, now) {
		return &view{state: s}
	}
	if s.Robot == "" {
		return nil
	}
	return &view{state: s, states: [2]shownState{{state: agent.Idle}, {state: agent.Idle}}}
}

// newState returns a frame with the state at a time, or nil if that state was already sent to
// viewers of all states, or of the RFC's seven.
func (v *view) newState(allStates bool, at time.Time) *Frame {
	last := &v.states[index(allStates)]
	now := shownState{state: ShownTo(allStates, v.state.At(at))}
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

// setTool adds a running tool, or removes an ended one.
func (v *view) setTool(t event.ToolStatus, made *Frame) {
	v.tools = slices.DeleteFunc(v.tools, func(running item) bool { return running.id == t.ID })
	if t.Status == event.ToolRunning {
		v.tools = append(v.tools, item{t.ID, t.Name, made})
	}
}

// setEmotion sets the latest face. changed reports whether the face or its intensity differs
// from the previous one, renamed whether the model's own word differs.
func (v *view) setEmotion(e event.Envelope, emotion event.Emotion) (changed, renamed bool) {
	changed = v.emotion.Name != emotion.Name || v.emotion.Intensity != emotion.Intensity
	renamed = v.emotion.Tag != emotion.Tag
	switch {
	case changed:
		v.emotion, v.emotionAt, v.faces = emotion, e, map[agent.Vocabulary]*Frame{}
	case renamed:
		v.emotion.Tag = emotion.Tag
		delete(v.faces, agent.VocabularyVerbatim)
	}
	return changed, renamed
}

// face returns a frame with the latest face, named in a vocabulary, or nil if there was none.
func (v *view) face(words agent.Vocabulary, table *agent.Words) *Frame {
	if v.emotion.Name == "" {
		return nil
	}
	made := v.faces[words]
	if made == nil {
		f := Face{Type: KindFace, TS: v.emotionAt.At.Unix(), Session: v.emotionAt.Session, Robot: v.emotionAt.Robot,
			Tag: table.Tag(words, v.emotion.Name, v.emotion.Tag), Intensity: cmp.Or(v.emotion.Intensity, 1)}
		made = newFrame(KindFace, f.Session, f.Robot, "f "+f.Session, f)
		v.faces[words] = made
	}
	return made
}
