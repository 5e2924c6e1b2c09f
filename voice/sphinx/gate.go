package sphinx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"perch/voice"
)

// How long an utterance waits for a pair after it has ended. After a longer silence than shortWait, people
// think that no answer will come. After longWait they have gone, or have asked again; longWait is also how
// long Perch waits for an engine on another machine.
const (
	shortWait = 1500 * time.Millisecond
	longWait  = 10 * time.Second // with voice.Options.Patient
)

// decodeTime is about the time that a PC needs to decode an utterance. An utterance is refused
// at once if so many wait before it that the wait would be too long even on such a machine.
const decodeTime = 150 * time.Millisecond

// errBusy is returned if the wait for a pair is too long.
var errBusy = fmt.Errorf("the speech recognizer: %w", voice.ErrBusy)

// gate limits the number of utterances being decoded to the number of decoder pairs. It admits
// utterances of robots that the owner has adopted before utterances of other robots, which are
// called strangers, and otherwise in order of arrival; an utterance that has ended when it arrives goes
// before utterances that ended later or have not ended. If there are several pairs, strangers cannot use
// all of them.
type gate struct {
	pairs int

	mu         sync.Mutex
	free       int        // number of pairs that are not in use
	strangerOK int        // number of further pairs that strangers may use
	adopted    []*waiting // waiting calls of enter for adopted robots
	strangers  []*waiting // waiting calls of enter for strangers
}

// waiting is an utterance that waits for a pair.
type waiting struct {
	utterance *voice.Utterance
	admitted  chan struct{} // closed when the utterance is admitted
}

// newGate returns a gate for this number of pairs.
func newGate(pairs int) *gate { return &gate{pairs: pairs, free: pairs, strangerOK: max(1, pairs-1)} }

// enter waits until the caller may use a pair. It returns an error if ctx ends or closed is closed
// earlier, or if the wait after the end of u is too long; that error wraps voice.ErrBusy. Without an
// error, the caller must call leave.
func (g *gate) enter(ctx context.Context, u *voice.Utterance, o voice.Options, closed <-chan struct{}) error {
	w := &waiting{u, make(chan struct{})}
	g.mu.Lock()
	if o.Stranger {
		g.strangers = insert(g.strangers, w)
	} else {
		g.adopted = insert(g.adopted, w)
	}
	g.admit()
	g.mu.Unlock()
	err := g.await(ctx, w, o.Patient, closed)
	if err == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.admitted: // admitted at the same time
		if errors.Is(err, voice.ErrBusy) {
			return nil
		}
		g.release(o.Stranger)
	default:
		isOwn := func(other *waiting) bool { return other == w }
		g.adopted, g.strangers = slices.DeleteFunc(g.adopted, isOwn), slices.DeleteFunc(g.strangers, isOwn)
	}
	return err
}

// insert adds w to a queue. If the utterance of w has ended, its place is before the utterances that ended later
// or have not ended; otherwise it is the end of the queue.
func insert(queue []*waiting, w *waiting) []*waiting {
	end := w.utterance.FinishedAt()
	i := slices.IndexFunc(queue, func(other *waiting) bool {
		theirs := other.utterance.FinishedAt()
		return !end.IsZero() && (theirs.IsZero() || theirs.After(end))
	})
	if i < 0 {
		i = len(queue)
	}
	return slices.Insert(queue, i, w)
}

// await waits until w is admitted. Its errors are those of enter.
func (g *gate) await(ctx context.Context, w *waiting, patient bool, closed <-chan struct{}) error {
	limit := shortWait
	if patient {
		limit = longWait
	}
	end := w.utterance.Finished()
	var tooLate <-chan time.Time
	for {
		select {
		case <-w.admitted:
			return nil
		case <-end:
			if time.Duration(g.before(w)/g.pairs)*decodeTime >= limit {
				return errBusy
			}
			end = nil
			timer := time.NewTimer(limit)
			defer timer.Stop()
			tooLate = timer.C
		case <-tooLate:
			return errBusy
		case <-ctx.Done():
			return ctx.Err()
		case <-closed:
			return errClosed
		}
	}
}

// before returns the number of utterances that wait before w.
func (g *gate) before(w *waiting) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, slices.Index(slices.Concat(g.adopted, g.strangers), w))
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
			close(g.adopted[0].admitted)
			g.adopted = g.adopted[1:]
		case len(g.strangers) > 0 && g.strangerOK > 0:
			close(g.strangers[0].admitted)
			g.strangers = g.strangers[1:]
			g.strangerOK--
		default:
			return
		}
		g.free--
	}
}
