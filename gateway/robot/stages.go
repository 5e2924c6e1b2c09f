package robot

import (
	"sync"
	"time"

	"perch/event"
)

// stages measures how long the stages of a turn take, from the end of the utterance.
type stages struct {
	mu           sync.Mutex
	began        time.Time            // end of the utterance, or beginning of a turn without one
	ends         map[string]time.Time // first end of each stage, by name of the stage
	runningTools int
	busySince    time.Time     // since when at least one tool has been running
	toolTime     time.Duration // time during which at least one tool was running
}

// start sets the beginning of the first stage. Later calls do nothing.
func (s *stages) start(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() {
		s.began = now
	}
}

func (s *stages) endStage(stage string) { s.endStageAt(stage, time.Now()) }

// endStageAt records the end of a stage, unless the stage has ended before or start was not called yet.
func (s *stages) endStageAt(stage string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ended := s.ends[stage]; ended || s.began.IsZero() {
		return
	}
	if s.ends == nil {
		s.ends = map[string]time.Time{}
	}
	s.ends[stage] = at
}

// setToolStatus records that a tool has begun or ended.
func (s *stages) setToolStatus(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if status == event.ToolRunning {
		if s.runningTools++; s.runningTools == 1 {
			s.busySince = now
		}
		return
	}
	if s.runningTools > 0 {
		if s.runningTools--; s.runningTools == 0 {
			s.toolTime += now.Sub(s.busySince)
		}
	}
}

// durations returns how long each stage took, in milliseconds. A stage begins when the stage before it ends.
// There are two exceptions: event.StageFirstPacket begins at the same time as the first stage, and
// event.StageTools is the time during which at least one tool was running.
func (s *stages) durations() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	durations := map[string]int64{}
	before := s.began
	for _, stage := range []string{event.StageEndpoint, event.StageRecognize, event.StageFirstToken, event.StageFirstSentence,
		event.StageFirstAudio} {
		if at, ended := s.ends[stage]; ended {
			durations[stage] = max(0, at.Sub(before).Milliseconds())
			before = at
		}
	}
	if at, ended := s.ends[event.StageFirstPacket]; ended {
		durations[event.StageFirstPacket] = at.Sub(s.began).Milliseconds()
	}
	if s.toolTime > 0 {
		durations[event.StageTools] = s.toolTime.Milliseconds()
	}
	return durations
}
