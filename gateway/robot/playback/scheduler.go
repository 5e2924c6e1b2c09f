package playback

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Scheduler shares the processor among the turns that make speech. At most one frame a core is
// encoded at a time, and next is the robot that would run dry first: if many begin to
// speak at once, each has its first packet before anybody has a second.
type Scheduler struct {
	mu      sync.Mutex
	free    int
	waiting []*place
}

// NewScheduler returns a scheduler for this machine.
func NewScheduler() *Scheduler { return &Scheduler{free: runtime.GOMAXPROCS(0)} }

// Speech is made ahead of its time, but not as fast as the processor can, which has more to do.
// Once easeAfter packets are queued, one is made every easePace, four times as fast as they play.
const (
	easeAfter = 20
	easePace  = 15 * time.Millisecond
)

// place is one session in the queue. It is used again for each frame.
type place struct {
	dry   time.Time     // when its robot has nothing to play
	enter chan struct{} // has one slot
}

func newPlace() *place { return &place{enter: make(chan struct{}, 1)} }

// acquire waits until a frame may be encoded for a robot that has so many packets ahead and runs
// dry at a time. Without an error, release has to be called after it.
func (s *Scheduler) acquire(ctx context.Context, p *place, ahead int, dry time.Time) error {
	if ahead > easeAfter {
		select {
		case <-time.After(easePace):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return nil
	}
	p.dry = dry
	s.waiting = append(s.waiting, p)
	s.mu.Unlock()
	select {
	case <-p.enter:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(s.waiting, p)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 { // it was let in at the same time
		<-p.enter
		s.release()
	}
	return ctx.Err()
}

// release lets the next one in. Few wait: it looks at each.
func (s *Scheduler) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	first := 0
	for i, p := range s.waiting {
		if p.dry.Before(s.waiting[first].dry) {
			first = i
		}
	}
	s.waiting[first].enter <- struct{}{}
	s.waiting = slices.Delete(s.waiting, first, first+1)
}
