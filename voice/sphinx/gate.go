package sphinx

import (
	"context"
	"slices"
	"sync"
)

// gate bounds the utterances being decoded by the number of decoder pairs: first those of
// adopted robots, in order of arrival, then strangers'. Strangers never get the last
// pair, if there is more than one.
type gate struct {
	mu        sync.Mutex
	free      int // pairs
	spare     int // pairs that strangers may use
	ours      []chan struct{}
	strangers []chan struct{}
}

func newGate(pairs int) *gate { return &gate{free: pairs, spare: max(1, pairs-1)} }

// enter waits for a place, ctx's end or closed. If it returns nil, leave must be called.
func (g *gate) enter(ctx context.Context, stranger bool, closed <-chan struct{}) error {
	turn := make(chan struct{})
	g.mu.Lock()
	if stranger {
		g.strangers = append(g.strangers, turn)
	} else {
		g.ours = append(g.ours, turn)
	}
	g.admit()
	g.mu.Unlock()
	var err error
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-closed:
		err = errClosed
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-turn: // both at the same time
		g.release(stranger)
	default:
		same := func(c chan struct{}) bool { return c == turn }
		g.ours, g.strangers = slices.DeleteFunc(g.ours, same), slices.DeleteFunc(g.strangers, same)
	}
	return err
}

func (g *gate) leave(stranger bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(stranger)
}

func (g *gate) release(stranger bool) {
	g.free++
	if stranger {
		g.spare++
	}
	g.admit()
}

// admit admits those who wait, as far as there are places.
func (g *gate) admit() {
	for g.free > 0 {
		switch {
		case len(g.ours) > 0:
			close(g.ours[0])
			g.ours = g.ours[1:]
		case len(g.strangers) > 0 && g.spare > 0:
			close(g.strangers[0])
			g.strangers = g.strangers[1:]
			g.spare--
		default:
			return
		}
		g.free--
	}
}
