package relay

import (
	"cmp"
	"slices"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar/feed"
)

// Scene is the appearance of an avatar that shows one session. Equal scenes look the same.
type Scene struct {
	Robot    device.ID // empty for a chat without a robot
	Session  string
	State    agent.Shown
	Tool     string // name of the latest running tool, or ""
	Face     string // name of the agent's face in the conversation, one of the firmware's 21, or ""
	Said     string // sentence that is being spoken, or ""
	Question string // question that waits for a person's yes or no, or ""
	Mood     event.Mood
}

// place returns the robot ID, or the session ID if there is no robot.
func (s Scene) place() string { return cmp.Or(string(s.Robot), s.Session) }

// Expression returns the name of the face to show, one of the firmware's 21. As on the robot, this is
// the face of the conversation during a conversation, and the face of the mood otherwise.
func (s Scene) Expression() string {
	switch s.State {
	case agent.Idle, agent.Sleeping, "":
		return cmp.Or(s.Mood.Face, neutral)
	}
	return cmp.Or(s.Face, s.Mood.Face, neutral)
}

// neutral is the name of the face at rest.
const neutral = "neutral"

// isBusy reports whether the agent is neither idle nor sleeping.
func (s Scene) isBusy() bool {
	return s.State != agent.Idle && s.State != agent.Sleeping && s.State != ""
}

// beginsTurn reports whether a turn of an agent begins as its state changes.
func beginsTurn(before, after agent.Shown) bool {
	isWork := slices.Contains([]agent.Shown{agent.Thinking, agent.Working, agent.Juggling, agent.Speaking}, after)
	return isWork && slices.Contains([]agent.Shown{agent.Idle, agent.Listening, agent.Attention, agent.Sleeping, ""}, before)
}

// scenes holds the scene of each session, and chooses the scene to show: the latest to become busy or
// to begin a turn. When that scene is no longer busy, another busy scene takes its place, if there is any.
type scenes struct {
	ordered []Scene // the last one is shown
}

// maxScenes is the maximum number of stored scenes.
const maxScenes = 100

// front returns the scene to show in a program with one avatar.
func (s *scenes) front() Scene {
	if len(s.ordered) == 0 {
		return Scene{State: agent.Idle}
	}
	return s.ordered[len(s.ordered)-1]
}

// apply updates the scene of a frame's session, and the order of the scenes.
func (s *scenes) apply(f *feed.Frame) {
	if f.Robot == "" && f.Session == "" {
		return // the frame is not about a session
	}
	key := cmp.Or(string(f.Robot), f.Session)
	i := slices.IndexFunc(s.ordered, func(scene Scene) bool { return scene.place() == key })
	if i < 0 {
		i = 0
		s.ordered = slices.Insert(s.ordered, 0, Scene{Robot: f.Robot, Session: f.Session, State: agent.Idle})
	}
	scene := &s.ordered[i]
	before, wasBusy := scene.State, scene.isBusy()
	scene.apply(f)
	updated := *scene
	switch {
	case updated.isBusy() && !wasBusy, beginsTurn(before, updated.State):
		s.ordered = append(slices.Delete(s.ordered, i, i+1), updated)
	case wasBusy && !updated.isBusy() && i == len(s.ordered)-1:
		s.replaceFront(updated)
	}
	if len(s.ordered) > maxScenes {
		s.ordered = slices.Delete(s.ordered, 0, 1)
	}
}

// replaceFront moves the last busy scene to the end, and the previous front scene to the beginning.
// It does nothing if no scene is busy.
func (s *scenes) replaceFront(front Scene) {
	last := len(s.ordered) - 1
	for i := last - 1; i >= 0; i-- {
		if s.ordered[i].isBusy() {
			s.ordered = slices.Insert(s.ordered[:last], 0, front)
			busy := s.ordered[i+1]
			s.ordered = append(slices.Delete(s.ordered, i+1, i+2), busy)
			return
		}
	}
}

// apply updates a scene with a frame of its session.
func (s *Scene) apply(f *feed.Frame) {
	if f.Session != "" {
		s.Session = f.Session
	}
	switch b := f.Body.(type) {
	case feed.State:
		s.State, s.Tool = b.State, ""
		if b.Detail != nil {
			s.Tool = b.Detail.Tool
		}
		if b.State != agent.Speaking {
			s.Said = ""
		}
		if b.State != agent.Notification {
			s.Question = ""
		}
		if !s.isBusy() {
			s.Face = ""
		}
	case feed.Face:
		s.Face = b.Tag
	case feed.Said:
		s.Said = b.Text
	case feed.Mood:
		s.Mood = b.Mood
	case feed.Notice:
		if b.Question != "" {
			s.Question = b.Text
		}
	}
}
