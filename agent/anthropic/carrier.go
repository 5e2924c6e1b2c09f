package anthropic

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// What a server may send, in bytes.
const (
	mostAnswered = 16 << 20
	mostRefused  = 64 << 10 // of what comes with an HTTP error
)

// longestPause is how long the SDK may wait before its second try. A person
// stands in front of the robot, and there may be another brain in the list.
const longestPause = 2 * time.Second

var (
	errSlow    = errors.New("too slow")
	errTooMuch = errors.New("the answer is larger than 16 MB")
)

// moved is a redirect, which is not followed.
type moved struct{ to string }

func (m *moved) Error() string { return "it sends elsewhere" }

// carrier bounds what the SDK does: it would read any length, wait as long as
// a server says, and take a redirect for an answer.
type carrier struct{ inner http.RoundTripper }

func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		response.Body.Close()
		return nil, &moved{response.Header.Get("Location")}
	}
	if after := response.Header.Get("Retry-After"); after != "" {
		seconds, err := strconv.ParseFloat(after, 64)
		if err != nil || !(seconds >= 0 && seconds <= longestPause.Seconds()) {
			response.Header.Set("X-Should-Retry", "false")
		}
	}
	response.Header.Del("Retry-After-Ms") // the SDK would take it over Retry-After, at any length
	b := &bounded{ReadCloser: response.Body, left: mostAnswered, full: errTooMuch}
	if response.StatusCode >= 400 {
		b.left, b.full = mostRefused, io.EOF // the status tells most of it
	}
	b.watch, _ = r.Context().Value(watchKey{}).(*watch)
	response.Body = b
	return response, nil
}

// CloseIdleConnections has http.Client's reach the carrier within.
func (c *carrier) CloseIdleConnections() {
	if closer, ok := c.inner.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// bounded is a body of limited length, whose reader is not kept waiting.
type bounded struct {
	io.ReadCloser
	left  int
	full  error  // at the limit
	watch *watch // nil outside a message
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.full
	}
	b.watch.wait()
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.watch.came(n)
	// The SDK passes pings over. A model that thinks may send nothing else; the
	// turn has bounds of its own.
	if b.watch != nil && bytes.Contains(p[:n], []byte("event: ping")) {
		b.watch.lives(b.watch.idle)
	}
	b.left -= n
	return n, err
}

// watch cancels a request that the server keeps waiting: until its first byte,
// over all tries, and then between signs of life, which not every byte is. The
// time a listener takes between two reads is not the server's. All but the timer
// runs on one goroutine.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
	left   time.Duration // of it
	since  time.Time     // it is waited
	began  bool
}

type watchKey struct{}

func watched(ctx context.Context, first, idle time.Duration) *watch {
	w := &watch{idle: idle, left: idle}
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.ctx = context.WithValue(ctx, watchKey{}, w)
	w.timer = time.AfterFunc(first, func() { w.cancel(errSlow) })
	return w
}

func (w *watch) wait() {
	if w != nil && w.began {
		w.since = time.Now()
		w.timer.Reset(w.left)
	}
}

func (w *watch) came(n int) {
	if w == nil || n == 0 && !w.began {
		return
	}
	w.timer.Stop()
	if w.began {
		w.left = max(0, w.left-time.Since(w.since))
	}
	w.began = true
}

// lives takes note of a sign of life, and of how long the next may take.
func (w *watch) lives(left time.Duration) { w.left = left }

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}
