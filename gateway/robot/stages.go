package robot

import (
	"sync"
	"time"
)

// stages is how long each stage of a turn took, from the end of speech.
type stages struct {
	mu    sync.Mutex
	from  time.Time
	marks map[string]int64 // milliseconds
}

// begin sets the zero of the clock, once.
func (s *stages) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from.IsZero() {
		s.from = now
	}
}

// mark notes when a stage was first reached.
func (s *stages) mark(stage string) { s.markAt(stage, time.Now()) }

func (s *stages) markAt(stage string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, done := s.marks[stage]; done || s.from.IsZero() {
		return
	}
	if s.marks == nil {
		s.marks = map[string]int64{}
	}
	s.marks[stage] = at.Sub(s.from).Milliseconds()
}

// all returns the stages and when each was reached.
func (s *stages) all() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := make(map[string]int64, len(s.marks))
	for stage, ms := range s.marks {
		copied[stage] = ms
	}
	return copied
}
