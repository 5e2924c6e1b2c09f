package perception

import "time"

// sleeper makes the robot sleep in the quiet hours. It does not disturb a talk, and
// wakes only a robot that it has put to sleep.
type sleeper struct {
	*QuietTuning
	begun bool // the start of these quiet hours was handled
	put   bool // it put the robot to sleep
	again time.Time
}

func (*sleeper) name() string          { return "quiet" }
func (s *sleeper) nextStep() time.Time { return s.again }

// The sleeper's interval, and how long after a talk a robot may sleep.
const (
	sleeperLooks = 30 * time.Second
	sleepsAfter  = 30 * time.Second
)

func (s *sleeper) step(m moment) []Act {
	if !m.now.Before(s.again) {
		s.again = m.now.Add(sleeperLooks)
	}
	switch {
	case !m.state.Online:
		return nil // it is put to sleep when its channel opens
	case m.quiet && !s.begun && m.idleFor(sleepsAfter):
		s.begun, s.put = true, m.state.Mode != modeSleep
		if s.put {
			return []Act{SetState{modeSleep}}
		}
	case !m.quiet && s.begun:
		wake := s.put && (m.state.Mode == modeSleep || m.state.Mode == "") // otherwise something else has woken it
		s.begun, s.put = false, false
		if wake {
			return []Act{SetState{modeIdle}}
		}
	}
	return nil
}

// suppressed reports whether an act is left out in the quiet hours. Acts that make
// a robot quieter, and acts that the robot does not execute, remain.
func suppressed(a Act) bool {
	switch a := a.(type) {
	case Abort, Publish, Notify:
		return false
	case SetState:
		return a.State != modeSleep
	}
	return true
}
