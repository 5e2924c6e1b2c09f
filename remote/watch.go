package remote

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// Patience is how long an engine may be silent, before and within its answer, until the next
// in the list is tried. An engine's configuration may set another time.
const Patience = 10 * time.Second

// errSilent is the cause of a call ended by a watch.
var errSilent = errors.New("the server is silent")

// Watch ends a call whose server is silent. It runs only while waiting for the server, and
// rests while the person still speaks or the listener is busy. The methods of a nil Watch do
// nothing.
type Watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	first  time.Duration // until the answer begins
	idle   time.Duration // between two signs of life

	mu       sync.Mutex
	timer    *time.Timer
	left     time.Duration // waiting time
	since    time.Time     // when it started; zero while it rests
	answered bool          // the upload no longer matters
	lived    bool          // there was a sign of life
	slow     bool          // the latest text came more slowly than it extends the wait
	over     bool
}

// NewWatch returns a resting watch. It ends its Context.
func NewWatch(ctx context.Context, first, idle time.Duration) *Watch {
	w := &Watch{first: first, idle: idle, left: first}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(first, func() { w.cancel(errSilent) })
	w.timer.Stop()
	return w
}

// Context returns the context for the call.
func (w *Watch) Context() context.Context { return w.ctx }

// Start starts the clock: the time for the answer to begin or, once it has begun, what is
// left of it.
func (w *Watch) Start() {
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.run()
	}
}

// run starts the clock. The lock is held.
func (w *Watch) run() {
	if !w.over && w.since.IsZero() {
		w.since = time.Now()
		w.timer.Reset(max(0, w.left))
	}
}

// Rest stops the clock. The elapsed time is not given back.
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

// Lives records a sign of life: the next may take within, or the watch's usual time if 0.
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

// worth is the waiting time that a text adds, as a multiple of the time to speak it. It
// matches a synthesizer's sound: see voice.Arrival.
const worth = 8

// sayByte is the time to speak a byte of text, at the usual speed of some 15 letters per
// second. A Chinese character has three bytes, and takes as long as three letters.
const sayByte = time.Second / 15

// Worth returns how long to wait for a model after it has written text: eight times as long
// as it takes to speak. Spaces are worth nothing.
func Worth(text string) time.Duration {
	n := 0
	for i := range len(text) {
		if text[i] > ' ' {
			n++
		}
	}
	return time.Duration(n) * worth * sayByte
}

// Wrote is Lives for text of that Worth. It adds to the time left, up to the watch's usual
// time, so that a model that writes at less than an eighth of the speed of speech ends,
// however evenly it writes. A worth of zero is no sign of life.
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

// sending records whether the server has something to read.
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

// begun records that the header of the answer has arrived. The clock goes on, because a
// header is not a byte of the answer.
func (w *Watch) begun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered = true
	w.run()
}

// Stop stops the clock and cancels the context.
func (w *Watch) Stop() {
	w.mu.Lock()
	w.over = true
	w.timer.Stop()
	w.mu.Unlock()
	w.cancel(nil)
}

// Silent returns what the server failed to do, if that ended the call, as the end of a
// sentence that begins with its name.
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

// Sleep waits for d, or returns ctx's error when ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// upload is the body of a request. The watch runs while a piece is being sent and after the
// last, but not while waiting for the next piece.
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

// Pace bounds the wait for the next piece of an answer, if its reader knows better than the
// watch: a second of sound adds more time than a byte.
type Pace interface {
	Left() time.Duration
	Waited(time.Duration)
	Trickles() bool // the time was used up by slow arrival rather than a single pause
}

// Body is a server's answer, bounded and watched while it is read.
type Body struct {
	io.ReadCloser
	Left  int    // bytes that may still come; negative: unlimited
	Full  error  // returned by Read if more come
	Watch *Watch // may be nil
	Pace  Pace   // if nil, the watch decides

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
	b.Watch.Start()
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
