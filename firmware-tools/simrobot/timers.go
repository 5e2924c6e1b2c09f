package simrobot

import "time"

const (
	// staleAfter is the time without a message after which the firmware treats an open channel
	// as closed. The firmware counts whole seconds, and requires more than 120 of them. Pings do not
	// count as messages.
	staleAfter = 121 * time.Second
	// checkInterval is the time between checks for a stale channel in dotty's firmware.
	checkInterval = 30 * time.Second
)

// staleAt returns the time at which the channel becomes stale, or zero if it is stale already.
func (s *session) staleAt() time.Time {
	if s.stale {
		return time.Time{}
	}
	return s.lastIn.Add(staleAfter)
}

// runTimers handles the timers that are due. It returns an *opening if dotty's firmware replaces a
// stale channel.
func (s *session) runTimers(now time.Time) error {
	s.r.ringReminders(now)
	if !s.stale && !now.Before(s.staleAt()) {
		s.stale = true // the firmware reacts only when it next uses the channel
		s.r.stats.Stale++
		s.r.o.Observe(WentStale{})
	}
	if !s.stopReadingAt.IsZero() && !now.Before(s.stopReadingAt) {
		s.stopReadingAt = time.Time{}
		s.r.StopReading()
	}
	if !s.idleAt.IsZero() && !now.Before(s.idleAt) {
		s.idleAt = time.Time{}
		s.mic.next, s.draining = time.Time{}, false
		s.enterState(Idle)
	}
	if !s.checkAt.IsZero() && !now.Before(s.checkAt) {
		s.checkAt = s.checkAt.Add(checkInterval)
		if s.stale && s.state == Idle {
			return &opening{command: command{do: doSense}}
		}
	}
	return nil
}
