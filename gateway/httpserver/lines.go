package httpserver

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// headerDelay is how long a stream that has no line yet waits before it sends its headers. Until then an
// error can still be sent as an error response; the headers show clients that the stream has begun.
const headerDelay = 200 * time.Millisecond

// Lines sends a stream of text lines. It calls write with ctx and a function out that sends one line, and
// returns the error of write. Lines are given to out without line breaks. Any goroutine may call out until
// write returns.
//
// If write fails before the stream has begun, nothing is sent, and the error can be rendered as a response.
// If it fails later, the connection is broken, so that the client does not take the text for complete.
func Lines(ctx context.Context, w http.ResponseWriter, write func(ctx context.Context, out func(line string) error) error) (err error) {
	l := &lines{w: w, control: http.NewResponseController(w)}
	l.start = time.AfterFunc(headerDelay, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		_ = l.sendHeader() // if this fails, sending the first line fails too
	})
	defer func() { l.finish(err) }()
	return write(ctx, l.send)
}

// lines is the state of a stream of lines.
type lines struct {
	w       http.ResponseWriter
	control *http.ResponseController
	start   *time.Timer // sends the headers after headerDelay

	mu    sync.Mutex // held while anything is sent
	begun bool       // the headers were sent
	ended bool       // the request is over
}

// sendHeader sends the headers, unless they were sent before or the request is over. l.mu must be held.
func (l *lines) sendHeader() error {
	if l.begun || l.ended {
		return nil
	}
	l.begun = true
	h := l.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no")
	h.Set("Connection", "close") // otherwise the deadline of the last line would apply to the next response
	l.w.WriteHeader(http.StatusOK)
	l.setDeadline()
	return l.control.Flush()
}

func (l *lines) send(line string) error {
	l.start.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return io.ErrClosedPipe
	}
	if err := l.sendHeader(); err != nil {
		return err
	}
	l.setDeadline()
	if _, err := io.WriteString(l.w, strings.TrimRight(line, "\r\n")+"\n"); err != nil {
		return err
	}
	return l.control.Flush()
}

// setDeadline bounds the time that the client may take to read. It ignores the error, which occurs only in
// tests, with writers that have no deadlines.
func (l *lines) setDeadline() { _ = l.control.SetWriteDeadline(time.Now().Add(sendTimeout)) }

// finish ends the stream. If write has failed after the headers were sent, it makes further writes fail,
// so that the server does not mark the response as complete.
func (l *lines) finish(err error) {
	l.start.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if err != nil && l.begun {
		_ = l.control.SetWriteDeadline(time.Unix(1, 0))
	}
}
