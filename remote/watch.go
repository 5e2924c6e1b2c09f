package remote

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// Patience is how long an engine may be silent, before its answer and in the middle
// of it, until the next in its list is tried. An engine's configuration may name
// another time.
const Patience = 10 * time.Second

// errSilent is why a watch ended a call.
var errSilent = errors.New("the server is silent")

// Watch ends a call whose server keeps silent. It runs only while the server is
// waited for. It rests while the person still speaks, or while the listener takes
// what has come. Its methods do nothing where it is nil.
type Watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	first  time.Duration // until the answer begins
	idle   time.Duration // between two signs of life

	mu       sync.Mutex
	timer    *time.Timer
	left     time.Duration // of waiting
	since    time.Time     // it runs; zero while it rests
	answered bool          // what is still being sent has no say any more
	lived    bool          // there was a sign of life
	slow     bool          // what was written last did not make up for the wait before it
	over     bool
}

// NewWatch returns a watch that rests. Its Context ends with it.
func NewWatch(ctx context.Context, first, idle time.Duration) *Watch {
	w := &Watch{first: first, idle: idle, left: first}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(first, func() { w.cancel(errSilent) })
	w.timer.Stop()
	return w
}

// Context is what the call is made with.
func (w *Watch) Context() context.Context { return w.ctx }

// Begin gives the server its time to begin the answer, or, once it has begun,
// what is left of it.
func (w *Watch) Begin() {
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.run()
	}
}

// run starts the clock. Its caller holds the lock.
func (w *Watch) run() {
	if !w.over && w.since.IsZero() {
		w.since = time.Now()
		w.timer.Reset(max(0, w.left))
	}
}

// Rest stops the clock. What was waited is not given again.
func (w *Watch) Rest() {
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.rest()
	}
}

func (w *Watch) rest() {
	w.timer.Stop()
	if !w.since.IsZero() {
		w.left -= time.Since(w.since)
		w.since = time.Time{}
	}
}

// Lives takes note of a sign of life: the next may take that long, the watch's
// usual time where it is 0.
func (w *Watch) Lives(within time.Duration) {
	if w == nil {
		return
	}
	within = cmp.Or(within, w.idle)
	w.mu.Lock()
	defer w.mu.Unlock()
	running := !w.since.IsZero()
	w.rest()
	w.left, w.lived, w.slow = within, true, false
	if running {
		w.run()
	}
}

// worth is how much waiting a text buys, in lengths of the time that it takes to be
// said. It is that of a synthesizer's sound: see voice.Arrival.
const worth = 8

// sayByte is how long a byte of text takes to be said, at the usual speed of some 15
// letters in a second. A Chinese character has three bytes, and takes as long as three
// letters do.
const sayByte = time.Second / 15

// Worth is how long a model may be waited for because of a text that it has written:
// eight times as long as the text takes to be said. Spaces are worth nothing.
func Worth(text string) time.Duration {
	n := 0
	for i := range len(text) {
		if text[i] > ' ' {
			n++
		}
	}
	return time.Duration(n) * worth * sayByte
}

// Wrote is Lives for text of that Worth. It adds to the time that is left, up to the
// watch's usual time, so that a model that writes at less than an eighth of the speed of
// speech comes to an end, however evenly it writes. The zero worth is no sign of life.
func (w *Watch) Wrote(worth time.Duration) {
	if w == nil || worth <= 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	running := !w.since.IsZero()
	w.rest()
	left := w.idle
	if w.lived {
		left = max(0, w.left) + worth
	}
	w.left, w.lived, w.slow = min(left, w.idle), true, left < w.idle
	if running {
		w.run()
	}
}

// sending notes that the server has, or has not, something to take in.
func (w *Watch) sending(something bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answered {
		return
	}
	w.rest()
	w.left = w.first
	if something {
		w.run()
	}
}

// begun notes that the header of the answer is there. The clock goes on, because
// a header is not yet a byte of the answer.
func (w *Watch) begun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered = true
	w.run()
}

// Stop ends the watch and its context.
func (w *Watch) Stop() {
	w.mu.Lock()
	w.over = true
	w.timer.Stop()
	w.mu.Unlock()
	w.cancel(nil)
}

// Silent says what the server did not do, where that is why the call has ended:
// the end of a sentence that begins with its name.
func (w *Watch) Silent() string {
	if w == nil || !errors.Is(context.Cause(w.ctx), errSilent) {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.slow {
		return "writes its answer far slower than it is spoken; is it overloaded, or too slow for this model?"
	}
	if w.lived {
		return "fell silent for " + w.idle.String() + " in the middle of its answer; see its log"
	}
	return "did not begin to answer within " + w.first.String() + "; it may be overloaded, too slow for this model, or stuck"
}

// Sleep waits for so long, or until ctx ends, and then returns its error.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// upload is the body of a request. The watch runs while a piece is being
// sent and after the last, and not while the next piece is waited for.
type upload struct {
	from  io.Reader
	watch *Watch
}

func (u *upload) Read(p []byte) (int, error) {
	u.watch.sending(false)
	defer u.watch.sending(true)
	return u.from.Read(p)
}

func (u *upload) Close() error { return nil }

// Pace is how long the next piece of an answer may take, where its reader knows
// better than the watch: a second of sound buys more time than a byte does.
type Pace interface {
	Left() time.Duration
	Waited(time.Duration)
	Trickles() bool // it is slowness that has used it up, and not one silence
}

// Body is what a server answers with, bounded and watched while it is read.
type Body struct {
	io.ReadCloser
	Left  int    // bytes that may come; negative: no bound
	Full  error  // what Read returns once more come
	Watch *Watch // nil: none
	Pace  Pace   // nil: what the watch has left

	begun    bool
	trickles bool // it was slow when a read last waited
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	paced := b.begun && b.Pace != nil
	if paced {
		b.trickles = b.Pace.Trickles()
		b.Watch.Lives(max(b.Pace.Left(), 1)) // 0 would be the usual time
	}
	waiting := time.Now()
	b.Watch.Begin()
	if b.Left >= 0 {
		p = p[:min(len(p), b.Left+1)]
	}
	n, err := b.ReadCloser.Read(p)
	b.Watch.Rest()
	if paced {
		b.Pace.Waited(time.Since(waiting))
	}
	b.begun = b.begun || n > 0
	switch {
	case b.Left < 0:
	case n > b.Left:
		return b.Left, b.Full
	default:
		b.Left -= n
	}
	return n, err
}
