package robot

import (
	"container/heap"
	"context"
	"runtime"
	"sync"
	"time"
)

// encoders share the processor among the turns that make speech. At most one frame a core
// is encoded at a time, and next is the robot's that would run dry first: where many begin
// to speak at once, each has its first packet before anybody has its second.
type encoders struct {
	mu      sync.Mutex
	free    int
	waiting places
}

func newEncoders() *encoders { return &encoders{free: runtime.GOMAXPROCS(0)} }

// Speech is made ahead of its time, but not as fast as the processor can: it has more to do.
// Once easeAfter packets are queued, one is made every easePace, four times as fast as they
// play.
const (
	easeAfter = 20
	easePace  = 15 * time.Millisecond
)

// place is one turn's in the queue. It is used again for each frame.
type place struct {
	dry   time.Time     // when its robot has nothing to play
	at    int           // in the queue; -1 is in none
	enter chan struct{} // has one slot
}

func newPlace() *place { return &place{at: -1, enter: make(chan struct{}, 1)} }

// begin waits until a frame may be encoded, of a turn that has so many packets ahead and whose
// robot runs dry then. Without an error, end has to be called after it.
func (e *encoders) begin(ctx context.Context, p *place, ahead int, dry time.Time) error {
	if ahead > easeAfter {
		if err := sleep(ctx, easePace); err != nil {
			return err
		}
	}
	e.mu.Lock()
	if e.free > 0 {
		e.free--
		e.mu.Unlock()
		return nil
	}
	p.dry = dry
	heap.Push(&e.waiting, p)
	e.mu.Unlock()
	select {
	case <-p.enter:
		return nil
	case <-ctx.Done():
	}
	e.mu.Lock()
	waits := p.at >= 0
	if waits {
		heap.Remove(&e.waiting, p.at)
	}
	e.mu.Unlock()
	if !waits { // it was let in at the same time
		<-p.enter
		e.end()
	}
	return ctx.Err()
}

// end lets the next one in.
func (e *encoders) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		e.free++
		return
	}
	heap.Pop(&e.waiting).(*place).enter <- struct{}{}
}

// places are a heap: first is whose robot runs dry first.
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
