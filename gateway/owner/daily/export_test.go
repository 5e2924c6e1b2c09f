package daily

import (
	"time"

	"perch/event"
)

func (s *Sums) Add(e event.Envelope) { s.add(e) }

func (s *Sums) Store() { s.store() }

// AdjustClock sets the wall clock of s forward, or back if by is negative.
func (s *Sums) AdjustClock(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	read := s.now
	s.now = func() moment {
		m := read()
		m.wall = m.wall.Add(by)
		return m
	}
}
