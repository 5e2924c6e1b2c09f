package httpserver

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// beginWithin is how long write may take to fail so that the client is answered with its error. The
// headers are sent then, so that a client knows that the stream has begun.
const beginWithin = 200 * time.Millisecond

// Lines sends plain text, flushed line by line, until write fails or the client leaves, and
// returns write's error. If the stream has not begun, nothing is sent, and the error can
// still be rendered; later, the connection breaks, so that part of a text does not pass
// for all. write gets a context that ends with the client, and a function that sends one
// line, given without its end; any goroutine may call it until write returns.
func Lines(ctx context.Context, w http.ResponseWriter, write func(ctx context.Context, out func(line string) error) error) (err error) {
	l := &lines{w: w, control: http.NewResponseController(w)}
	l.start = time.AfterFunc(beginWithin, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		_ = l.sendHeader() // the first line meets the same failure
	})
	defer func() { l.finish(err) }()
	return write(ctx, l.send)
}

// lines is a stream of lines. Its lock separates the headers from the first line, and both
// from the end of the request.
type lines struct {
	w       http.ResponseWriter
	control *http.ResponseController
	start   *time.Timer

	mu    sync.Mutex
	begun bool
	ended bool
}

// sendHeader sends the headers, once.
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
	h.Set("Connection", "close") // the deadline of the last line would be the next answer's
	l.w.WriteHeader(http.StatusOK)
	l.deadline()
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
	l.deadline()
	if _, err := io.WriteString(l.w, strings.TrimRight(line, "\r\n")+"\n"); err != nil {
		return err
	}
	return l.control.Flush()
}

// deadline bounds the time for the client to read. A ResponseWriter of a test may have no deadlines.
func (l *lines) deadline() { _ = l.control.SetWriteDeadline(time.Now().Add(sendWithin)) }

// finish also keeps the server from sending the mark of a whole answer after a
// failure.
func (l *lines) finish(err error) {
	l.start.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if err != nil && l.begun {
		_ = l.control.SetWriteDeadline(time.Unix(1, 0))
	}
}
