package sphinx

import (
	"context"
	"slices"
	"sync"
)

// gate lets as many utterances in as there may be pairs of decoders: first those
// of the household, in the order in which they came, and then guests'. Guests
// never have the last pair, where there is more than one.
type gate struct {
	mu     sync.Mutex
	free   int // places
	spare  int // of those, that guests may have
	ours   []chan struct{}
	guests []chan struct{}
}

func newGate(pairs int) *gate { return &gate{free: pairs, spare: max(1, pairs-1)} }

// enter waits for a place, ctx's end or closed. Where it returns nil, leave gives
// the place back.
func (g *gate) enter(ctx context.Context, guest bool, closed <-chan struct{}) error {
	turn := make(chan struct{})
	g.mu.Lock()
	if guest {
		g.guests = append(g.guests, turn)
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
	case <-turn: // it came at the same time
		g.release(guest)
	default:
		same := func(c chan struct{}) bool { return c == turn }
		g.ours, g.guests = slices.DeleteFunc(g.ours, same), slices.DeleteFunc(g.guests, same)
	}
	return err
}

func (g *gate) leave(guest bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(guest)
}

func (g *gate) release(guest bool) {
	g.free++
	if guest {
		g.spare++
	}
	g.admit()
}

// admit lets in whoever may.
func (g *gate) admit() {
	for g.free > 0 {
		switch {
		case len(g.ours) > 0:
			close(g.ours[0])
			g.ours = g.ours[1:]
		case len(g.guests) > 0 && g.spare > 0:
			close(g.guests[0])
			g.guests = g.guests[1:]
			g.spare--
		default:
			return
		}
		g.free--
	}
}
