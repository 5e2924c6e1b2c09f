package relay

import (
	"cmp"
	"slices"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar/feed"
)

// Scene is what a program with one avatar shows of one session. Equal scenes look the same.
type Scene struct {
	Robot   device.ID
	Session string
	State   agent.Shown
	Tool    string // the latest one while tools are running
	Face    string // the agent's face in the conversation, one of the firmware's 21 names
	Said    string // the sentence being spoken
	// Question waits for a yes or no from a person.
	Question string
	Mood     event.Mood
}

// place returns the robot's id, or the session where no robot is involved.
func (s Scene) place() string { return cmp.Or(string(s.Robot), s.Session) }

// Expression returns the face to show, one of the firmware's 21 names: the conversation's during a
// conversation, else the mood's, as on the robot.
func (s Scene) Expression() string {
	switch s.State {
	case agent.Idle, agent.Sleeping, "":
		return cmp.Or(s.Mood.Face, neutral)
	}
	return cmp.Or(s.Face, s.Mood.Face, neutral)
}

const neutral = "neutral"

// busy reports whether an agent is working.
func (s Scene) busy() bool {
	return s.State != agent.Idle && s.State != agent.Sleeping && s.State != ""
}

// scenes holds the scene of each session. The session that became busy last is in front, until it
// rests while another is busy.
type scenes struct {
	all []Scene // the last one is in front
}

// mostScenes bounds the sessions that are remembered.
const mostScenes = 100

// front returns the scene for a program with one avatar.
func (s *scenes) front() Scene {
	if len(s.all) == 0 {
		return Scene{State: agent.Idle}
	}
	return s.all[len(s.all)-1]
}

// apply updates the scene of the frame's session, and the order.
func (s *scenes) apply(f *feed.Frame) {
	if f.Robot == "" && f.Session == "" {
		return // belongs to no avatar
	}
	key := cmp.Or(string(f.Robot), f.Session)
	i := slices.IndexFunc(s.all, func(one Scene) bool { return one.place() == key })
	if i < 0 {
		// Behind the busy ones, but before the first.
		i = 0
		s.all = slices.Insert(s.all, 0, Scene{Robot: f.Robot, Session: f.Session, State: agent.Idle})
	}
	one := &s.all[i]
	before := one.busy()
	one.apply(f)
	after := *one
	switch {
	case after.busy() && !before:
		s.all = append(slices.Delete(s.all, i, i+1), after)
	case before && !after.busy() && i == len(s.all)-1:
		s.rest(after)
	}
	if len(s.all) > mostScenes {
		s.all = slices.Delete(s.all, 0, 1)
	}
}

// rest moves the front scene behind all others if another is busy.
func (s *scenes) rest(front Scene) {
	last := len(s.all) - 1
	for i := last - 1; i >= 0; i-- {
		if s.all[i].busy() {
			s.all = slices.Insert(s.all[:last], 0, front)
			busy := s.all[i+1]
			s.all = append(slices.Delete(s.all, i+1, i+2), busy)
			return
		}
	}
}

// apply updates a scene by a frame of its session.
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
