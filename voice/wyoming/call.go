package wyoming

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"perch/voice"
)

// fault is why a server could not be used, in a sentence. It wraps voice.ErrUnavailable,
// so that the next engine is tried.
type fault struct {
	server string // empty if none was found
	why    string // cause and cure
	cause  error
}

func (f *fault) Error() string {
	if f.server == "" {
		return fmt.Sprintf("%v: %s", voice.ErrUnavailable, f.why)
	}
	return fmt.Sprintf("%v: the Wyoming server at %s: %s", voice.ErrUnavailable, f.server, f.why)
}

func (f *fault) Unwrap() []error { return []error{voice.ErrUnavailable, f.cause} }

// call is one connection, for one request. One goroutine sends and one reads.
type call struct {
	conn   net.Conn
	r      *Reader
	w      *Writer
	within time.Duration
	empty  int // events in a row without content

	mu           sync.Mutex
	due          time.Time // end of the server's time to answer; zero until it has its whole input
	unhurriedNow bool      // the listener is slow, and the server cannot go on
}

// send writes an event. A server that reads nothing for the whole time to answer is
// treated as dead.
func (c *call) send(name string, data any, payload []byte) error {
	e, err := NewEvent(name, data, payload)
	if err != nil {
		return err
	}
	if err := c.setWriteDeadline(); err != nil {
		return err
	}
	return c.w.Write(e)
}

// setWriteDeadline sets the write deadline.
func (c *call) setWriteDeadline() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unhurriedNow {
		return nil // no deadline
	}
	return c.conn.SetWriteDeadline(time.Now().Add(c.within))
}

// unhurried runs a function that may take minutes through no fault of the server. A
// server that cannot write its sound may not read more text either.
func (c *call) unhurried(run func() error) error {
	c.setUnhurried(true, time.Time{})
	err := run()
	c.setUnhurried(false, time.Now().Add(c.within))
	return err
}

func (c *call) setUnhurried(unhurriedNow bool, by time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unhurriedNow = unhurriedNow
	_ = c.conn.SetWriteDeadline(by) // a broken connection is reported by the read
}

// ask starts the server's time to answer, since it has its whole input.
func (c *call) ask() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.setDue(time.Now().Add(c.within))
}

// setDue sets the end of the server's time. c.mu is held.
func (c *call) setDue(due time.Time) error {
	c.due = due
	return c.conn.SetReadDeadline(due)
}

// extend gives the server more time, if its time has started, up to the whole time to answer.
// It reports whether the result is less than that.
func (c *call) extend(more time.Duration) (less bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.due.IsZero() {
		return false, nil
	}
	full := time.Now().Add(c.within)
	due := c.due.Add(more)
	if due.After(full) {
		due = full
	}
	return due.Before(full), c.setDue(due)
}

// mostEmpty is how many events without sound or text may come in a row. A server may send
// a few per second while it listens.
const mostEmpty = 1000

// read returns the next event, or the server's complaint as an error.
func (c *call) read() (Event, error) {
	e, err := c.r.Read()
	if err != nil {
		return e, err
	}
	if c.empty++; c.empty > mostEmpty {
		return e, reason("its events carry nothing, neither sound nor text; is it a Wyoming server?")
	}
	if e.Type != TypeError {
		return e, nil
	}
	var f Failure
	if err := e.Decode(&f); err != nil {
		return Event{}, err
	}
	return Event{}, reason("it says: " + printable(f.Text))
}

// reason is the sentence of a fault.
type reason string

func (r reason) Error() string { return string(r) }

// listenerError is an error of out, which is returned unchanged since the server is not at
// fault.
type listenerError struct{ error }

// grace is the wait for an answer that may have arrived when the server stops reading.
const grace = 100 * time.Millisecond

// talk makes a call. The server must be reached within connect, and may be silent for
// answer. send runs concurrently with receive, and ends with it.
func (s *server) talk(ctx context.Context, connect, answer time.Duration, send func(context.Context, *call) error,
	receive func(*call) error) error {
	conn, err := s.endpoint.dial(ctx, connect)
	if err != nil {
		if ctx.Err() == nil {
			s.served.Forget()
		}
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	c := &call{conn: conn, r: NewReader(conn, Limits{}), w: NewWriter(conn), within: answer}
	sent := make(chan error, 1)
	go func() {
		err := send(inner, c)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			_ = conn.SetReadDeadline(time.Now().Add(grace))
		}
		// Reading meets the broken connection too, after the server's last words,
		// which say more than the write error.
		sent <- err
	}()
	err = receive(c)
	cancel()
	_ = conn.Close() // errors that matter are in err
	unsent := <-sent
	return s.judge(ctx, err, unsent, answer)
}

// judge combines the two errors of a call with that time to answer.
func (s *server) judge(ctx context.Context, err, unsent error, within time.Duration) error {
	var own listenerError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own.error
	}
	s.served.Forget()
	return s.faulty(explain(err, unsent, within), err)
}

func (s *server) faulty(why string, cause error) error {
	return &fault{s.endpoint.String(), why, cause}
}

// explain says why reading failed with err, and sending with unsent if that failed.
func explain(err, unsent error, within time.Duration) string {
	var said reason
	switch {
	case errors.As(err, &said):
		return said.Error()
	case errors.Is(err, ErrFormat):
		return err.Error() + "; is another program on that port?"
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return "it closed the connection before it had answered; its own log may say why"
	case errors.Is(unsent, os.ErrDeadlineExceeded):
		return fmt.Sprintf("it took nothing for %s; is it overloaded?", within)
	}
	return fmt.Sprintf("it did not answer within %s; is it overloaded, or still loading its model?", within)
}
