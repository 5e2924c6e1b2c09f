package notice

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
)

// Timers handle jumps of the wall clock as follows.
//   - A timer with a Length that was set in this run follows the running clock. Its stored Due
//     is corrected after a jump.
//   - A timer of an earlier run follows the wall clock, because no other clock ran while the
//     appliance was off. It waits no longer than its Length, in case the wall clock is slow.
//   - An alarm follows the wall clock in the time zone. If the clock jumps by more than
//     maxAlarmDelay, an alarm that repeats, or was set in this run, has the wrong date, and
//     moves to the next of its times.

// maxAlarmDelay is how late an alarm may ring. One that is later, because the appliance was
// off, is only reported if it rings once, and moves to its next time if it repeats.
const maxAlarmDelay = time.Hour

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

// followClock corrects the times of the timers and alarms. jump is how far the wall clock has
// jumped since the last call.
func (s *Timers) followClock(jump time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, running := s.clock.Now().In(s.zone), s.clock.Running()
	var failure error
	for id, p := range s.pending {
		if p.rang {
			continue
		}
		t := p.Timer
		if due := now.Add(p.at - running); p.thisRun && t.Length != 0 && due.Sub(p.Due).Abs() > maxDueError {
			t.Due, t.Set = due, due.Add(-t.Length)
		}
		if t.At != "" {
			t.Due = p.followClock(jump, now)
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

// followClock returns when an alarm rings. now is the wall clock's time in the alarm's time zone,
// and jump is how far the wall clock has jumped. The alarm rings at once if it should have rung
// at most maxAlarmDelay ago, unless the clock was set back: then it has passed that time before.
func (p *pending) followClock(jump time.Duration, now time.Time) time.Time {
	repeats, since := p.Days != 0, now.Add(-maxAlarmDelay)
	switch {
	case repeats && p.Due.Before(since), jump > maxAlarmDelay && (repeats || p.thisRun):
		return p.Next(since)
	case jump < -maxAlarmDelay && (repeats || p.thisRun):
		return p.Next(now)
	case !p.OnRobot && !p.Next(p.Due.In(now.Location()).Add(-1)).Equal(p.Due): // the time zone has changed
		return p.Next(now)
	}
	return p.Due
}

// advance moves an alarm that rings and repeats to its next time, durably.
func (s *Timers) advance(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.pending[id]
	if !ok {
		return nil // cancelled
	}
	p.Due = p.Next(p.Due.In(s.zone))
	s.notifyChanged(id)
	if err := s.table.Put(id, p.Timer); err != nil {
		return fmt.Errorf("store a timer: %w", err)
	}
	return nil
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
