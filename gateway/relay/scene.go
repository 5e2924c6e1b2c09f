package relay

import (
	"cmp"
	"slices"

	"perch/agent"
	"perch/agent/feed"
	"perch/device"
	"perch/event"
)

// Scene is what a program with one avatar shows: one session. It is a value; two that
// are equal look alike.
type Scene struct {
	Robot   device.ID
	Session string
	State   agent.Shown
	Tool    string // that began last, while tools are at work
	Face    string // what the agent's face is in the talk, one of the firmware's 21 names
	Said    string // the sentence that is spoken; empty otherwise
	// Question waits for a person's yes or no; empty otherwise.
	Question string
	Mood     event.Mood
}

// place is the robot, or the session where there is none.
func (s Scene) place() string { return cmp.Or(string(s.Robot), s.Session) }

// Expression is the face that is worn, one of the firmware's 21 names: the talk's while
// one goes on, else the mood's, as the robot does.
func (s Scene) Expression() string {
	switch s.State {
	case agent.Idle, agent.Sleeping, "":
		return cmp.Or(s.Mood.Face, neutral)
	}
	return cmp.Or(s.Face, s.Mood.Face, neutral)
}

const neutral = "neutral"

// busy reports whether an agent is at work.
func (s Scene) busy() bool {
	return s.State != agent.Idle && s.State != agent.Sleeping && s.State != ""
}

// scenes folds frames into what each session shows, and chooses the one in front: the
// one that began to be busy last, until it is at rest and another is not.
type scenes struct {
	all []Scene // the one in front is the last
}

// mostScenes bounds the sessions that are remembered.
const mostScenes = 100

// front is the one that a program with one avatar shows.
func (s *scenes) front() Scene {
	if len(s.all) == 0 {
		return Scene{State: agent.Idle}
	}
	return s.all[len(s.all)-1]
}

// take brings in a frame.
func (s *scenes) take(f *feed.Frame) {
	if f.Robot == "" && f.Session == "" {
		return // of nobody who has a face
	}
	key := cmp.Or(string(f.Robot), f.Session)
	i := slices.IndexFunc(s.all, func(one Scene) bool { return one.place() == key })
	if i < 0 {
		// Behind those that are busy, but before the first.
		i = 0
		s.all = slices.Insert(s.all, 0, Scene{Robot: f.Robot, Session: f.Session, State: agent.Idle})
	}
	one := &s.all[i]
	before := one.busy()
	one.take(f)
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

// rest puts the one in front behind those that are busy, where there are any.
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

// take brings a frame of its own into a scene.
func (s *Scene) take(f *feed.Frame) {
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
