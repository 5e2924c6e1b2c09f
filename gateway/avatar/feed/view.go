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

// view holds the state of the latest session of a robot, or of a session without a robot, and the
// frames about the session that viewers were sent.
type view struct {
	state     agent.State   // latest state from the board
	states    [2]shownState // states that were last sent to the two groups of viewers; see index
	tools     []item        // running tools, oldest first
	questions []item        // open questions
	// face is the latest face; its Name is empty before the first face, and after the session became idle or
	// the robot opened another channel. faceEvent is the event that set the face. faceFrames holds the frames
	// with the face, each made when a viewer first needs that frame.
	face       event.Emotion
	faceEvent  event.Envelope
	faceFrames map[agent.Vocabulary]*Frame
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

// isVisible reports whether a snapshot includes a session. A session is visible if it is not idle,
// or if a conversation is in progress.
func isVisible(s agent.State, now time.Time) bool { return s.Talking || s.At(now) != agent.Idle }

// newView returns the view of a new session. It returns nil for an invisible session without a
// robot, which needs no view. For an invisible session of a robot, the view counts the state idle as
// sent, so that no frame is sent for a robot that does nothing.
func newView(s agent.State, now time.Time) *view {
	if isVisible(s, now) {
		return &view{state: s}
	}
	if s.Robot == "" {
		return nil
	}
	return &view{state: s, states: [2]shownState{{state: agent.Idle}, {state: agent.Idle}}}
}

// stateFrame returns a frame with the state at a time, for viewers of all ten states or for viewers
// of the RFC's seven, and records it as sent. It returns nil if the same state and detail were sent to
// these viewers before.
func (v *view) stateFrame(allStates bool, at time.Time) *Frame {
	last := &v.states[index(allStates)]
	next := shownState{state: ShownTo(allStates, v.state.At(at))}
	switch v.state.At(at) {
	case agent.Juggling:
		next.detail.SubAgents = v.state.SubAgents
		fallthrough
	case agent.Working:
		if n := len(v.tools); n > 0 {
			next.detail.Tool = plain.Clip(v.tools[n-1].name, limit.Name)
		}
	}
	if last.state == next.state && last.detail == next.detail {
		return nil
	}
	body := State{Type: KindState, TS: at.Unix(), State: next.state, Session: v.state.Session, Robot: v.state.Robot}
	if next.state == agent.Working || next.state == agent.Juggling {
		body.Detail = &next.detail
	}
	next.frame = newFrame(KindState, body.Session, body.Robot, "s "+body.Session, body)
	*last = next
	return next.frame
}

// setTool adds a tool that is running, or removes a tool that has ended.
func (v *view) setTool(t event.ToolStatus, frame *Frame) {
	v.tools = slices.DeleteFunc(v.tools, func(running item) bool { return running.id == t.ID })
	if t.Status == event.ToolRunning {
		v.tools = append(v.tools, item{t.ID, t.Name, frame})
	}
}

// setFace sets the latest face. changed reports whether the name of the face or its intensity differs
// from the previous face. renamed reports whether the word that the language model wrote for
// the face differs.
func (v *view) setFace(e event.Envelope, face event.Emotion) (changed, renamed bool) {
	changed = v.face.Name != face.Name || v.face.Intensity != face.Intensity
	renamed = v.face.Tag != face.Tag
	switch {
	case changed:
		v.face, v.faceEvent, v.faceFrames = face, e, map[agent.Vocabulary]*Frame{}
	case renamed:
		v.face.Tag = face.Tag
		delete(v.faceFrames, agent.VocabularyVerbatim)
	}
	return changed, renamed
}

// faceFrame returns a frame with a vocabulary's word for the latest face, or nil if the name of the face is
// empty.
func (v *view) faceFrame(vocabulary agent.Vocabulary, words *agent.Words) *Frame {
	if v.face.Name == "" {
		return nil
	}
	frame := v.faceFrames[vocabulary]
	if frame == nil {
		body := Face{Type: KindFace, TS: v.faceEvent.At.Unix(), Session: v.faceEvent.Session, Robot: v.faceEvent.Robot,
			Tag: words.Tag(vocabulary, v.face.Name, v.face.Tag), Intensity: cmp.Or(v.face.Intensity, 1)}
		frame = newFrame(KindFace, body.Session, body.Robot, "f "+body.Session, body)
		v.faceFrames[vocabulary] = frame
	}
	return frame
}
