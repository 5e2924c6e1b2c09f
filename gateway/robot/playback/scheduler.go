package playback

import (
	"container/heap"
	"context"
	"runtime"
	"sync"
	"time"
)

// Scheduler shares the processor among the turns that make speech. At most one frame a core is
// encoded at a time, and next is the robot that would run dry first: if many begin to
// speak at once, each has its first packet before anybody has a second.
type Scheduler struct {
	mu      sync.Mutex
	free    int
	waiting places
}

// NewScheduler returns a scheduler for this machine.
func NewScheduler() *Scheduler { return &Scheduler{free: runtime.GOMAXPROCS(0)} }

// Speech is made ahead of its time, but not as fast as the processor can, which has more to do.
// Once easeAfter packets are queued, one is made every easePace, four times as fast as they play.
const (
	easeAfter = 20
	easePace  = 15 * time.Millisecond
)

// place is one session's place in the queue. It is used again for each frame.
type place struct {
	dry   time.Time     // when its robot has nothing to play
	at    int           // in the queue; -1 if it is in none
	enter chan struct{} // has one slot
}

func newPlace() *place { return &place{at: -1, enter: make(chan struct{}, 1)} }

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
	heap.Push(&s.waiting, p)
	s.mu.Unlock()
	select {
	case <-p.enter:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	waits := p.at >= 0
	if waits {
		heap.Remove(&s.waiting, p.at)
	}
	s.mu.Unlock()
	if !waits { // it was let in at the same time
		<-p.enter
		s.release()
	}
	return ctx.Err()
}

// release lets the next one in.
func (s *Scheduler) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	heap.Pop(&s.waiting).(*place).enter <- struct{}{}
}

// places are a heap: first is the robot that runs dry first.
type places []*place

func (w places) Len() int           { return len(w) }
func (w places) Less(i, j int) bool { return w[i].dry.Before(w[j].dry) }

func (w places) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].at, w[j].at = i, j
}

// Push implements heap.Interface.
func (w *places) Push(p any) {
	p.(*place).at = len(*w)
	*w = append(*w, p.(*place))
}

// Pop implements heap.Interface.
func (w *places) Pop() any {
	last := (*w)[len(*w)-1]
	last.at = -1
	(*w)[len(*w)-1] = nil
	*w = (*w)[:len(*w)-1]
	return last
}
