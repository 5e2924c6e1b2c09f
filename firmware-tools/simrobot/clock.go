package simrobot

import "time"

const (
	// silence is how long an open channel may be quiet before the firmware
	// treats it as closed: more than 120 whole seconds. Pings do not count.
	silence = 121 * time.Second
	// tick is how often dotty's build checks its channel.
	tick = 30 * time.Second
)

// staleAt returns when the channel will count as closed; zero if it does already.
func (s *session) staleAt() time.Time {
	if s.stale {
		return time.Time{}
	}
	return s.lastIn.Add(silence)
}

// runTimers acts on the timers that are due.
func (s *session) runTimers(now time.Time) error {
	s.r.ring(now)
	if !s.stale && !now.Before(s.staleAt()) {
		s.stale = true // the firmware only acts on it later
		s.r.stats.Stale++
		s.r.o.Observe(WentStale{})
	}
	if !s.deafAt.IsZero() && !now.Before(s.deafAt) {
		s.deafAt = time.Time{}
		s.r.StopReading()
	}
	if !s.idleAt.IsZero() && !now.Before(s.idleAt) {
		s.idleAt = time.Time{}
		s.mic.next, s.draining = time.Time{}, false
		s.enter(Idle)
	}
	if !s.tickAt.IsZero() && !now.Before(s.tickAt) {
		s.tickAt = s.tickAt.Add(tick)
		if s.stale && s.state == Idle {
			return &opening{command: command{do: doSense}}
		}
	}
	return nil
}
