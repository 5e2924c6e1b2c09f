package notice

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
)

// When the wall clock jumps:
//   - A timer with a length that was set in this run follows the running clock,
//     and its time of day is corrected.
//   - A timer with a length from an earlier run follows the wall clock, because no
//     other clock ran while the appliance was off. It waits at most its length, in case
//     the wall clock is behind.
//   - A reminder at a time of day follows the wall clock. After a jump of more than
//     mostSlip, a reminder of this run was set on a wrong day, and moves to the next
//     such time of day.

// mostSlip bounds how late a reminder rings after a jump of the clock.
const mostSlip = time.Hour

// mostDrift is how wrong a stored time of day may be before it is corrected. A clock
// that is being slewed must not wear out the disk.
const mostDrift = time.Second

// holdFor is how long before its time a timer keeps a robot's channel open.
const holdFor = 30 * time.Minute

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

// clockJumped moves this run's reminders after a jump of the wall clock: one for
// seven o'clock is for the next seven o'clock.
func (s *Timers) clockJumped(by time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	var failure error
	for id, p := range s.pending {
		if !p.thisRun || p.Length != 0 || p.rang || by.Abs() <= mostSlip {
			continue
		}
		t := p.Timer
		t.Due, t.Set = next(t.Due, now.Add(-mostSlip)), t.Set.Add(by)
		if t.Due.Equal(p.Due) {
			continue
		}
		p.Timer = t
		s.notifyChanged(id)
		if err := s.table.Put(id, t); err != nil {
			failure = fmt.Errorf("keep a timer: %w", err)
		}
	}
	return failure
}

// next returns the first time after after with due's time of day.
func next(due, after time.Time) time.Time {
	after = after.In(due.Location())
	year, month, day := after.Date()
	for d := 0; ; d++ {
		at := time.Date(year, month, day+d, due.Hour(), due.Minute(), due.Second(), 0, due.Location())
		if at.After(after) {
			return at
		}
	}
}

// correctDue corrects the times of day made wrong by a jump of the clock, so that they
// are right after a restart.
func (s *Timers) correctDue() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, running := s.clock.Now(), s.clock.Running()
	var failure error
	for id, p := range s.pending {
		if !p.thisRun || p.Length == 0 || p.rang {
			continue
		}
		due := now.Add(p.at - running)
		if off := due.Sub(p.Due); off.Abs() <= mostDrift {
			continue
		}
		t := p.Timer
		t.Due, t.Set = due, due.Add(-t.Length)
		if err := s.table.Put(id, t); err != nil {
			failure = fmt.Errorf("keep a timer: %w", err)
			continue
		}
		p.Timer = t
		s.notifyChanged(id)
	}
	return failure
}

// dueTimers returns the timers that are due, in order. They stay due until they are
// removed or marked as rung.
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
	all := make([]agent.Timer, len(list))
	for i, p := range list {
		all[i] = p.Timer
	}
	return all
}

// markRung marks a timer that has rung and is not removed yet.
func (s *Timers) markRung(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, there := s.pending[id]; there && !p.rang {
		p.rang = true
		s.notifyChanged(id)
	}
}

// rung returns the ids of the timers that have rung and are not removed yet.
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

// next returns the time until a timer rings or needs an open channel.
func (s *Timers) next() (wait time.Duration, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, running := s.clock.Now(), s.clock.Running()
	for _, p := range s.pending {
		left := p.left(now, running)
		switch {
		case p.rang:
			left = checkEvery
		case left > holdFor:
			left -= holdFor
		}
		if !some || left < wait {
			wait = left
		}
		some = true
	}
	return max(wait, 0), some
}

// holdUntil returns until when a robot's channel must stay open so that the robot can
// announce its timers; the zero time if it has none.
func (s *Timers) holdUntil(robot device.ID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, running := s.clock.Now(), s.clock.Running()
	longest := time.Duration(0)
	for _, p := range s.pending {
		if left := p.left(now, running); p.Robot == robot && !p.OnRobot && !p.rang && left <= holdFor {
			longest = max(longest, left)
		}
	}
	if longest == 0 {
		return time.Time{}
	}
	return now.Add(longest)
}
