package playback

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Scheduler shares the processor among the sessions that encode speech. A frame is the 60 ms of sound of one
// packet. At most one frame per core is encoded at a time, and the next frame is for the robot that will run
// out of sound first: if many robots begin to speak at the same time, each gets its first packet before any
// gets a second.
type Scheduler struct {
	mu      sync.Mutex
	free    int // cores that encode no frame
	waiting []*waiter
}

// NewScheduler returns a scheduler for this machine.
func NewScheduler() *Scheduler { return &Scheduler{free: runtime.GOMAXPROCS(0)} }

// Speech is encoded ahead of its time, but slowed down to leave the processor to other work: while more than
// paceAfter packets are queued for a robot, each frame takes at least minFrameTime, a quarter of its playing
// time.
const (
	paceAfter    = 20
	minFrameTime = 15 * time.Millisecond
)

// waiter is a session that waits to encode a frame. Each session reuses the same waiter.
type waiter struct {
	dry   time.Time     // when the robot of the session runs dry, which means that it has nothing more to play
	enter chan struct{} // has one slot, filled when the session may encode
}

// newWaiter returns a waiter for a session.
func newWaiter() *waiter { return &waiter{enter: make(chan struct{}, 1)} }

// acquire waits until the session of p may encode a frame. ahead is how many packets are queued for its
// robot, and dry is when the robot runs dry. If acquire returns nil, release must be called after the
// encoding. It returns an error only if ctx has ended.
func (s *Scheduler) acquire(ctx context.Context, p *waiter, ahead int, dry time.Time) error {
	if ahead > paceAfter {
		select {
		case <-time.After(minFrameTime):
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
	if i < 0 { // release has chosen p since ctx ended
		<-p.enter
		s.release()
	}
	return ctx.Err()
}

// release lets the session whose robot runs dry first encode a frame, or frees the core if no session waits.
// There are few waiters, so a linear search is fast enough.
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
