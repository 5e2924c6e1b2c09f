package perception

import "time"

// sleeper puts the robot into its own sleep for the quiet hours, and out of it
// afterwards. It does not disturb a talk, and wakes nobody whom it has not put
// to sleep.
type sleeper struct {
	QuietTuning
	told  bool // of these quiet hours
	put   bool // it is asleep because of them
	again time.Time
}

func (*sleeper) name() string     { return "quiet" }
func (s *sleeper) due() time.Time { return s.again }

// How often the sleeper looks at the clock, and how long after a talk it lets
// a robot sleep.
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
		return nil // it is told when its channel opens
	case m.quiet && !s.told && m.free(sleepsAfter):
		s.told, s.put = true, m.state.Mode != modeSleep
		if s.put {
			return []Act{SetState{modeSleep}}
		}
	case !m.quiet && s.told:
		wake := s.put && (m.state.Mode == modeSleep || m.state.Mode == "") // else somebody has woken it
		s.told, s.put = false, false
		if wake {
			return []Act{SetState{modeIdle}}
		}
	}
	return nil
}

// silences tells whether an act is left out in the quiet hours: all but what
// makes a robot quieter, and what is not done by the robot.
func silences(a Act) bool {
	switch a := a.(type) {
	case Abort, Tell, Notify:
		return false
	case SetState:
		return a.State != modeSleep
	}
	return true
}
