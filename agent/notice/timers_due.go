package notice

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
)

// Timers handle jumps of the wall clock as follows. Here a timer is an entry with a
// Length, and a reminder an entry without one, which rings at a time of day.
//   - A timer that was set in this run follows the running clock. Its stored Due is
//     corrected after a jump.
//   - A timer of an earlier run follows the wall clock, because no other clock ran while the
//     appliance was off. It waits no longer than its Length, in case the wall clock is slow.
//   - A reminder follows the wall clock. If the clock jumps by more than maxReminderDelay, a
//     reminder that was set in this run has the wrong date, and moves to the next occurrence
//     of its time of day.

// maxReminderDelay is how late a reminder may ring after a jump of the clock.
const maxReminderDelay = time.Hour

// maxDueError is the largest error of a stored Due that is not corrected. It prevents a
// write for every small adjustment of the clock.
const maxDueError = time.Second

// holdBefore is how long the channel of a timer's robot is held open before the timer
// rings.
const holdBefore = 30 * time.Minute

// left returns the time until a timer rings; 0 or less means now.
func (p *pending) left(now time.Time, running time.Duration) time.Duration {
	byWall, byRunning := p.Due.Sub(now.Round(0)), p.at-running
	switch {
	case p.Length == 0:
		return byWall
	case p.thisRun:
		return byRunning
	}
	return min(byWall, byRunning)
}

// followClock corrects the times of the timers and reminders that were set in this run. jump
// is how far the wall clock has jumped since the last call. If jump is more than
// maxReminderDelay, a reminder for seven o'clock moves to the next seven o'clock.
func (s *Timers) followClock(jump time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, running := s.clock.Now(), s.clock.Running()
	var failure error
	for id, p := range s.pending {
		if !p.thisRun || p.rang {
			continue
		}
		t := p.Timer
		if t.Length == 0 && jump.Abs() > maxReminderDelay {
			t.Due, t.Set = nextOccurrence(t.Due, now.Add(-maxReminderDelay)), t.Set.Add(jump)
		}
		if due := now.Add(p.at - running); t.Length != 0 && due.Sub(p.Due).Abs() > maxDueError {
			t.Due, t.Set = due, due.Add(-t.Length)
		}
		if t.Due.Equal(p.Due) {
			continue
		}
		if err := s.table.Put(id, t); err != nil {
			failure = fmt.Errorf("store a timer: %w", err)
			if t.Length != 0 {
				continue // the next call tries again
			}
		}
		p.Timer = t
		s.notifyChanged(id)
	}
	return failure
}

// nextOccurrence returns the first time that is later than the parameter after, and has the
// time of day of due.
func nextOccurrence(due, after time.Time) time.Time {
	after = after.In(due.Location())
	year, month, day := after.Date()
	for d := 0; ; d++ {
		at := time.Date(year, month, day+d, due.Hour(), due.Minute(), due.Second(), 0, due.Location())
		if at.After(after) {
			return at
		}
	}
}

// dueTimers returns the timers that are due, the earliest first. They remain due until they
// are removed or marked as rung.
func (s *Timers) dueTimers() []agent.Timer {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, running := s.clock.Now(), s.clock.Running()
	var list []*pending
	for _, p := range s.pending {
		if !p.rang && p.left(now, running) <= 0 {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *pending) int {
		return cmp.Compare(a.left(now, running), b.left(now, running))
	})
	timers := make([]agent.Timer, len(list))
	for i, p := range list {
		timers[i] = p.Timer
	}
	return timers
}

// markRung marks a timer as rung. The timer is removed later.
func (s *Timers) markRung(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.pending[id]; ok && !p.rang {
		p.rang = true
		s.notifyChanged(id)
	}
}

// rung returns the IDs of the timers that have rung and are not removed yet.
func (s *Timers) rung() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.pending {
		if p.rang {
			ids = append(ids, id)
		}
	}
	return ids
}

// nextDue returns the time until a timer rings or needs an open channel. For a timer that has
// rung but could not be removed, it returns at most checkInterval. ok is false if there are no timers.
func (s *Timers) nextDue() (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, running := s.clock.Now(), s.clock.Running()
	for _, p := range s.pending {
		left := p.left(now, running)
		switch {
		case p.rang:
			left = checkInterval
		case left > holdBefore:
			left -= holdBefore
		}
		if !ok || left < wait {
			wait = left
		}
		ok = true
	}
	return max(wait, 0), ok
}

// holdUntil returns until when a robot's channel must be held open because the robot will
// announce timers. It returns the zero time if no timer of the robot is due soon.
func (s *Timers) holdUntil(robot device.ID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, running := s.clock.Now(), s.clock.Running()
	longest := time.Duration(0)
	for _, p := range s.pending {
		if left := p.left(now, running); p.Robot == robot && !p.OnRobot && !p.rang && left <= holdBefore {
			longest = max(longest, left)
		}
	}
	if longest == 0 {
		return time.Time{}
	}
	return now.Add(longest)
}
