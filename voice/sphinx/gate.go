package sphinx

import (
	"context"
	"slices"
	"sync"
)

// gate limits the number of utterances being decoded to the number of decoder pairs. It admits
// utterances of robots that the owner has adopted before utterances of other robots, which are
// called strangers, and otherwise in order of arrival. If there are several pairs, strangers cannot
// use all of them.
type gate struct {
	mu         sync.Mutex
	free       int             // number of pairs that are not in use
	strangerOK int             // number of further pairs that strangers may use
	adopted    []chan struct{} // waiting calls of enter for adopted robots; closed when admitted
	strangers  []chan struct{} // waiting calls of enter for strangers; closed when admitted
}

// newGate returns a gate for this number of pairs.
func newGate(pairs int) *gate { return &gate{free: pairs, strangerOK: max(1, pairs-1)} }

// enter waits until the caller may use a pair. It returns an error if ctx ends or closed is
// closed earlier. Otherwise the caller must call leave.
func (g *gate) enter(ctx context.Context, stranger bool, closed <-chan struct{}) error {
	admitted := make(chan struct{})
	g.mu.Lock()
	if stranger {
		g.strangers = append(g.strangers, admitted)
	} else {
		g.adopted = append(g.adopted, admitted)
	}
	g.admit()
	g.mu.Unlock()
	var err error
	select {
	case <-admitted:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-closed:
		err = errClosed
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-admitted: // admitted at the same time
		g.release(stranger)
	default:
		isOwn := func(c chan struct{}) bool { return c == admitted }
		g.adopted, g.strangers = slices.DeleteFunc(g.adopted, isOwn), slices.DeleteFunc(g.strangers, isOwn)
	}
	return err
}

// leave lets another utterance use the pair.
func (g *gate) leave(stranger bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(stranger)
}

// release is leave for callers that hold mu.
func (g *gate) release(stranger bool) {
	g.free++
	if stranger {
		g.strangerOK++
	}
	g.admit()
}

// admit admits waiting calls while pairs are free. The caller holds mu.
func (g *gate) admit() {
	for g.free > 0 {
		switch {
		case len(g.adopted) > 0:
			close(g.adopted[0])
			g.adopted = g.adopted[1:]
		case len(g.strangers) > 0 && g.strangerOK > 0:
			close(g.strangers[0])
			g.strangers = g.strangers[1:]
			g.strangerOK--
		default:
			return
		}
		g.free--
	}
}
