package robot

import (
	"sync"
	"time"

	"perch/event"
)

// stages measures the stages of a turn, from the end of speech on.
type stages struct {
	mu    sync.Mutex
	from  time.Time
	marks map[string]time.Time // when each was first over
	busy  int                  // tools at work
	since time.Time            // they have been
	tools time.Duration        // in all; tools that run at the same time count once
}

// start sets the zero of the clock, once.
func (s *stages) start(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from.IsZero() {
		s.from = now
	}
}

// mark records that a stage is over, the first time.
func (s *stages) mark(stage string) { s.markAt(stage, time.Now()) }

func (s *stages) markAt(stage string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, done := s.marks[stage]; done || s.from.IsZero() {
		return
	}
	if s.marks == nil {
		s.marks = map[string]time.Time{}
	}
	s.marks[stage] = at
}

// tool records that a tool has begun or ended.
func (s *stages) tool(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if status == event.ToolRunning {
		if s.busy++; s.busy == 1 {
			s.since = now
		}
		return
	}
	if s.busy > 0 {
		if s.busy--; s.busy == 0 {
			s.tools += now.Sub(s.since)
		}
	}
}

// all returns how long each stage took, in milliseconds since the stage before it. The first packet
// is counted from the end of speech.
func (s *stages) all() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	took := map[string]int64{}
	before := s.from
	for _, stage := range []string{event.StageEndpoint, event.StageRecognize, event.StageFirstToken, event.StageFirstSentence,
		event.StageFirstAudio} {
		if at, there := s.marks[stage]; there {
			took[stage] = max(0, at.Sub(before).Milliseconds())
			before = at
		}
	}
	if at, there := s.marks[event.StageFirstPacket]; there {
		took[event.StageFirstPacket] = at.Sub(s.from).Milliseconds()
	}
	if s.tools > 0 {
		took[event.StageTools] = s.tools.Milliseconds()
	}
	return took
}
