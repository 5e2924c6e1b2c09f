package perception

import "time"

// sleeper puts the robot to sleep in the quiet hours and wakes it afterwards. It waits
// for the end of a conversation, and wakes only a robot that it has put to sleep.
type sleeper struct {
	*QuietTuning
	handled    bool      // whether the sleeper has acted on the current quiet hours
	putToSleep bool      // whether the sleeper has put the robot to sleep
	nextCheck  time.Time // when to check the clock next; zero before the first step
}

func (*sleeper) name() string          { return "quiet" }
func (s *sleeper) nextStep() time.Time { return s.nextCheck }

const (
	sleeperInterval = 30 * time.Second // between two checks of the clock
	sleepAfterTalk  = 30 * time.Second // shortest time between a conversation and sleep
)

func (s *sleeper) step(m moment) []Act {
	if !m.now.Before(s.nextCheck) {
		s.nextCheck = m.now.Add(sleeperInterval)
	}
	switch {
	case !m.state.Online:
		return nil // a later step acts, when the robot is online
	case m.quiet && !s.handled && m.idleFor(sleepAfterTalk):
		s.handled, s.putToSleep = true, m.state.Mode != modeSleep
		if s.putToSleep {
			return []Act{SetState{modeSleep}}
		}
	case !m.quiet && s.handled:
		stillAsleep := m.state.Mode == modeSleep || m.state.Mode == "" // "" if the robot does not report its state
		wake := s.putToSleep && stillAsleep
		s.handled, s.putToSleep = false, false
		if wake {
			return []Act{SetState{modeIdle}}
		}
	}
	return nil
}

// isSuppressed reports whether an act is dropped in the quiet hours. Acts that make the
// robot quieter, and acts that other programs execute, are not dropped.
func isSuppressed(a Act) bool {
	switch a := a.(type) {
	case Abort, Publish, Notify:
		return false
	case SetState:
		return a.State != modeSleep
	}
	return true
}
