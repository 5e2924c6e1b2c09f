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

// view holds the state of a session, and the frames about the session that viewers were sent.
type view struct {
	state     agent.State   // latest state from the board
	states    [2]shownState // states that were last sent to the two groups of viewers; see index
	tools     []item        // running tools, oldest first
	questions []item        // open questions
	emotion   event.Emotion // latest face; its Name is empty before the first face
	emotionAt event.Envelope
	faces     map[agent.Vocabulary]*Frame // frames with emotion, each made when a viewer first needs it
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

// index returns the index in view.states: 0 for viewers of the RFC's seven states, 1 for viewers of
// all ten.
func index(allStates bool) int {
	if allStates {
		return 1
	}
	return 0
}

// isVisible reports whether a snapshot includes a session: if the session is not idle, if a
// conversation is going on, or if the state expires after now.
func isVisible(s agent.State, now time.Time) bool {
	due := s.ExpiresAt()
	return s.Talking || s.At(now) != agent.Idle || !due.IsZero() && due.After(now)
}

// newView returns the view of a new session. It returns nil for an invisible session without a
// robot, which needs no view. For an invisible session of a robot, the view says that viewers were
// already sent the state idle, so that they are not sent it again.
func newView(s agent.State, now time.Time) *view {
	if isVisible(s, now) {
		return &view{state: s}
	}
	if s.Robot == "" {
		return nil
	}
	return &view{state: s, states: [2]shownState{{state: agent.Idle}, {state: agent.Idle}}}
}

// newState returns a frame with the state at a time, for viewers of all ten states or for viewers of
// the RFC's seven. It returns nil if those viewers were already sent that state.
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

// setTool adds a tool that is running, or removes a tool that has ended.
func (v *view) setTool(t event.ToolStatus, made *Frame) {
	v.tools = slices.DeleteFunc(v.tools, func(running item) bool { return running.id == t.ID })
	if t.Status == event.ToolRunning {
		v.tools = append(v.tools, item{t.ID, t.Name, made})
	}
}

// setEmotion sets the latest face. changed reports whether the face or its intensity differs
// from the previous one; renamed reports whether the language model wrote another word for the face.
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

// face returns a frame with the word for the latest face in a vocabulary, or nil before the first
// face.
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
