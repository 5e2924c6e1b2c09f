package remote

import (
	"errors"
	"io"
	"sync"
	"time"
)

// Causes of a call's end that are not its caller's.
var (
	errSlow   = errors.New("the server is silent")
	errClosed = errors.New("the engine is closed")
)

// watch cancels a call whose server keeps silent. It rests while the wait is
// for somebody else: for who speaks, or for who listens.
type watch struct {
	mu     sync.Mutex
	timer  *time.Timer
	first  time.Duration
	sent   bool // an answer is there; what is still being sent has no say
	over   bool
	rested bool
}

// newWatch returns a watch that rests.
func newWatch(first time.Duration, cancel func()) *watch {
	w := &watch{first: first, timer: time.AfterFunc(first, cancel)}
	w.rest()
	return w
}

// rest stops the clock until it is armed.
func (w *watch) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.rested = true
}

func (w *watch) arm(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reset(d)
}

// reset is arm for who holds the lock.
func (w *watch) reset(d time.Duration) {
	if !w.over {
		w.timer.Reset(d)
		w.rested = false
	}
}

// sending tells that the server has, or has not, something to take in.
func (w *watch) sending(something bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.sent:
	case something:
		w.reset(w.first)
	default:
		w.timer.Stop()
		w.rested = true
	}
}

// answered tells that the header of the answer is there. The clock goes on,
// because a header is not yet a byte of sound.
func (w *watch) answered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = true
	if w.rested {
		w.reset(w.first)
	}
}

func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}

// upload is the body of a request. The watch runs while a piece is being
// sent and after the last, and not while the next piece is waited for.
type upload struct {
	from  io.Reader
	watch *watch
}

func (u *upload) Read(p []byte) (int, error) {
	u.watch.sending(false)
	defer u.watch.sending(true)
	return u.from.Read(p)
}

func (u *upload) Close() error { return nil }
