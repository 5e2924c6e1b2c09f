package remote

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// Patience is the default time that an engine may be silent before and within a response, until
// the next engine of the list is used.
const Patience = 10 * time.Second

// errSilent is the cause with which a watch cancels its context.
var errSilent = errors.New("the server is silent")

// Watch ends a call if its server is silent for too long. The clock of the watch runs only while the
// caller waits for the server, and not while a person still speaks or the caller handles a piece of
// the response. Start, Pause, Reset, Add and Silent do nothing on a nil Watch. A Watch is safe for
// concurrent use.
type Watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	first  time.Duration // maximum wait until the first sign of life
	idle   time.Duration // maximum wait between two signs of life

	mu       sync.Mutex
	timer    *time.Timer
	left     time.Duration // remaining waiting time, as of since
	since    time.Time     // when the clock started; zero while it is stopped
	answered bool          // whether the response's header has arrived; after that, sending has no effect
	lived    bool          // whether there was a sign of life
	slow     bool          // whether the remaining time is less than idle because the text arrives slowly
	over     bool          // whether Stop was called
}

// NewWatch returns a watch whose clock is stopped. When the waiting time is used up, the watch
// cancels its Context. The parameter first is the waiting time at the beginning, and idle is the waiting
// time after a sign of life.
func NewWatch(ctx context.Context, first, idle time.Duration) *Watch {
	w := &Watch{first: first, idle: idle, left: first}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(first, func() { w.cancel(errSilent) })
	w.timer.Stop()
	return w
}

// Context returns the context for the call.
func (w *Watch) Context() context.Context { return w.ctx }

// Start starts the clock with the remaining waiting time.
func (w *Watch) Start() {
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.run()
	}
}

// run starts the clock. The caller holds mu.
func (w *Watch) run() {
	if !w.over && w.since.IsZero() {
		w.since = time.Now()
		w.timer.Reset(max(0, w.left))
	}
}

// Pause stops the clock. The next Start continues with the remaining time.
func (w *Watch) Pause() {
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pause()
	}
}

// pause stops the clock. The caller holds mu.
func (w *Watch) pause() {
	w.timer.Stop()
	if !w.since.IsZero() {
		w.left -= time.Since(w.since)
		w.since = time.Time{}
	}
}

// Reset records a sign of life of the server, and sets the remaining time to within, or to the
// idle time of the watch if within is 0.
func (w *Watch) Reset(within time.Duration) {
	if w == nil {
		return
	}
	within = cmp.Or(within, w.idle)
	w.mu.Lock()
	defer w.mu.Unlock()
	running := !w.since.IsZero()
	w.pause()
	w.left, w.lived, w.slow = within, true, false
	if running {
		w.run()
	}
}

// waitFactor is the waiting time that a text adds, as a multiple of the time it takes to
// speak the text. voice.Arrival has the same factor for a synthesizer's sound.
const waitFactor = 8

// speakByte is the time it takes to speak a byte of text, at 15 letters per second. A Chinese
// character has three bytes, and takes as long as three letters.
const speakByte = time.Second / 15

// TextWait returns the waiting time that a model's text adds: eight times as long as it takes to
// speak the text. Spaces add nothing.
func TextWait(text string) time.Duration {
	n := 0
	for i := range len(text) {
		if text[i] > ' ' {
			n++
		}
	}
	return time.Duration(n) * waitFactor * speakByte
}

// Add records that text has arrived, and adds d, the TextWait of the text, to the remaining time, up
// to the idle time of the watch. If the text is the first sign of life, Add sets the remaining time to the
// idle time. So the watch ends the call of a model that writes at less than an eighth of the speed of
// speech, even if the model never pauses. Add does nothing if d is 0.
func (w *Watch) Add(d time.Duration) {
	if w == nil || d <= 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	running := !w.since.IsZero()
	w.pause()
	left := w.idle
	if w.lived {
		left = max(0, w.left) + d
	}
	w.left, w.lived, w.slow = min(left, w.idle), true, left < w.idle
	if running {
		w.run()
	}
}

// sending sets the remaining time to the initial waiting time, and starts the clock if active is true:
// a piece of the request is being sent, or the whole request was sent. If active is false, upload waits
// for the next piece of the request, and the clock stands still. After the header of the response has
// arrived, sending does nothing.
func (w *Watch) sending(active bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answered {
		return
	}
	w.pause()
	w.left = w.first
	if active {
		w.run()
	}
}

// begun records that the header of the response has arrived. The clock continues to run until
// the first byte of the body.
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

// Silent returns why the watch has ended the call, or "" if the watch has not ended the call. The text
// continues a sentence that begins with the server's name.
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

// Sleep waits for d. If ctx ends first, it returns ctx's error.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// upload is the body of a request. The clock of the watch runs while a piece is being sent and
// after the last piece, but not while upload waits for the next piece from the reader.
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

// Pace bounds the wait for the next piece of a response by the pieces that have arrived. For example,
// after a second of sound the wait may be longer than after a single byte.
type Pace interface {
	// Left returns the maximum wait for the next piece.
	Left() time.Duration
	// Waited records the time that was spent waiting for a piece.
	Waited(time.Duration)
	// Trickles reports whether slow arrival has reduced the result of Left. If the next wait then uses
	// up this time, the cause is slow arrival and not a single pause.
	Trickles() bool
}

// Body is the body of a response, limited in size and watched while it is read.
type Body struct {
	io.ReadCloser
	Left  int    // number of bytes that may still arrive; negative means unlimited
	Full  error  // returned by Read if more bytes arrive
	Watch *Watch // may be nil
	Pace  Pace   // bounds waits after the first byte; if nil, only Watch does

	begun    bool // whether a byte has arrived
	trickles bool // result of Pace.Trickles before the latest Read
}

// Read reads the body. The clock of the watch runs during the call.
func (b *Body) Read(p []byte) (int, error) {
	paced := b.begun && b.Pace != nil
	if paced {
		b.trickles = b.Pace.Trickles()
		b.Watch.Reset(max(b.Pace.Left(), 1)) // 0 would mean the idle time
	}
	start := time.Now()
	b.Watch.Start()
	if b.Left >= 0 {
		p = p[:min(len(p), b.Left+1)]
	}
	n, err := b.ReadCloser.Read(p)
	b.Watch.Pause()
	if paced {
		b.Pace.Waited(time.Since(start))
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
