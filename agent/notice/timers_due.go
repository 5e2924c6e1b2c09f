package notice

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
)

// When the clock jumps: a timer of some minutes that was set in this run
// follows the running clock, and its time of day is corrected. One from before
// follows the wall clock, for nothing else has counted while the appliance was
// off, but waits no longer than it was set for, in case the clock is behind. A
// reminder at a time of day follows the wall clock always. Where that jumps by
// more than mostSlip, one of this run was set on a day that was wrong, and is for
// the next time that the clock says so.

// mostSlip is how long after its time a reminder still rings that a jump of the
// clock has passed over.
const mostSlip = time.Hour

// mostDrift is how far a timer's time of day may be off before it is written
// anew. A clock that is being slewed to the right time need not wear the disk.
const mostDrift = time.Second

// holdFor is how long before its time a timer keeps a robot's channel open.
const holdFor = 30 * time.Minute

// left is how long a timer still waits; 0 and less is now.
func (p *pending) left(now time.Time, running time.Duration) time.Duration {
	byWall, byRunning := p.Due.Sub(now.Round(0)), p.at-running
	switch {
	case p.Length == 0:
		return byWall
	case p.here:
		return byRunning
	}
	return min(byWall, byRunning)
}

// moved tells that the wall clock has jumped, which may have been by days: a
// reminder set for seven o'clock is for the next one, by the clock as it is now.
func (s *Timers) moved(by time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	var failure error
	for id, p := range s.pending {
		if !p.here || p.Length != 0 || p.rang || by.Abs() <= mostSlip {
			continue
		}
		t := p.Timer
		t.Due, t.Set = next(t.Due, now.Add(-mostSlip)), t.Set.Add(by)
		if t.Due.Equal(p.Due) {
			continue
		}
		p.Timer = t
		if err := s.kept.Put(id, t); err != nil {
			failure = fmt.Errorf("keep a timer: %w", err)
		}
	}
	return failure
}

// next is the first time after another at which the clock shows what it does
// at due.
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

// follow corrects the times of day that a jump of the clock has made wrong,
// so that a restart finds them right.
func (s *Timers) follow() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, running := s.clock.Now(), s.clock.Running()
	var failure error
	for id, p := range s.pending {
		if !p.here || p.Length == 0 || p.rang {
			continue
		}
		due := now.Add(p.at - running)
		if off := due.Sub(p.Due); off.Abs() <= mostDrift {
			continue
		}
		t := p.Timer
		t.Due, t.Set = due, due.Add(-t.Length)
		if err := s.kept.Put(id, t); err != nil {
			failure = fmt.Errorf("keep a timer: %w", err)
			continue
		}
		p.Timer = t
	}
	return failure
}

// due are those whose time has come, in the order it came. They are due until
// they are removed or silenced.
func (s *Timers) due() []agent.Timer {
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

// silence marks one that rang and cannot be removed yet.
func (s *Timers) silence(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, there := s.pending[id]; there {
		p.rang = true
	}
}

// silenced are those that rang and are still there.
func (s *Timers) silenced() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.pending {
		if p.rang {
			ids = append(ids, id)
		}
	}
	return ids
}

// next is how long until there is something to do: one rings, or comes near
// enough to hold a channel open for it.
func (s *Timers) next() (wait time.Duration, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, running := s.clock.Now(), s.clock.Running()
	for _, p := range s.pending {
		left := p.left(now, running)
		switch {
		case p.rang:
			left = lookEvery
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

// hold is until when a robot's channel is to be held open, so that it can be
// told in time; the zero time where it need not be.
func (s *Timers) hold(robot device.ID) time.Time {
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
