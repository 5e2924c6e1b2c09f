package httpserver

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// beginWithin is how long the writer of a stream of lines may take to fail
// and still be answered with its error. A client then knows that the stream
// has begun, though there may be nothing to send for long.
const beginWithin = 200 * time.Millisecond

// Lines sends plain text, flushed line by line, until write fails or the
// client goes away, and returns write's error. Where that comes before the
// stream has begun, nothing is sent, and it can still be rendered; later, the
// connection breaks, so that part of a text does not pass for all. write is
// given a context that ends with the client, and the function that sends one
// line, without its end; that may be called from any goroutine, until write
// returns.
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

// lines is a stream of lines. Its lock keeps the start apart from the first
// line, and both from a request that has ended.
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

// deadline gives the client its time to read. Not every ResponseWriter has
// deadlines; those of a server do.
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
