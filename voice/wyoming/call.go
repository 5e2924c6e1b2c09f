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

// fault is why a server could not be used, in a sentence. It wraps
// voice.ErrUnavailable, so that the next engine is tried.
type fault struct {
	server string // none where no server was found
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

// call is one connection, for one request. Sending and reading are for one
// goroutine each.
type call struct {
	conn   net.Conn
	r      *Reader
	w      *Writer
	within time.Duration
	empty  int // events in a row that carry nothing

	mu           sync.Mutex
	due          time.Time // when its time to answer is over; zero until the server has all it needs
	unhurriedNow bool      // the listener takes its time, and the server cannot go on
}

// send writes an event. A server that reads nothing for as long as it may take
// to answer is taken for dead.
func (c *call) send(name string, data any, payload []byte) error {
	e, err := NewEvent(name, data, payload)
	if err != nil {
		return err
	}
	if err := c.writeBy(); err != nil {
		return err
	}
	return c.w.Write(e)
}

// writeBy gives the server its time to take something.
func (c *call) writeBy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unhurriedNow {
		return nil // there is none
	}
	return c.conn.SetWriteDeadline(time.Now().Add(c.within))
}

// unhurried runs what may take minutes and is not the server's doing. One that
// cannot get rid of its sound meanwhile may not take more text either.
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
	_ = c.conn.SetWriteDeadline(by) // reading reports a connection that broke
}

// ask says that the server has all it needs: its time begins.
func (c *call) ask() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by(time.Now().Add(c.within))
}

// by sets when the server's time is over. c.mu is held.
func (c *call) by(due time.Time) error {
	c.due = due
	return c.conn.SetReadDeadline(due)
}

// goOn gives the server, if its time has begun, so much more of it, up to all that it
// has. It reports whether that is less than all.
func (c *call) goOn(more time.Duration) (less bool, err error) {
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
	return due.Before(full), c.by(due)
}

// mostEmpty is how many events may come, one after the other, that carry neither sound
// nor text. A server may send a few in a second while it listens.
const mostEmpty = 1000

// read returns the next event; the server's complaint is an error.
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

// reason is a fault that has its sentence already.
type reason string

func (r reason) Error() string { return string(r) }

// listenerError is an error of out. The server is not at fault, and the error is
// returned as it is.
type listenerError struct{ error }

// grace is for an answer that is there already when the server will not take
// any more.
const grace = 100 * time.Millisecond

// talk makes a call. The server is connected within the time to connect, and may be
// silent for the time to answer. send runs beside receive, and the call is over with
// receive. Nothing is left of it then.
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
		// A connection that broke is met by reading too, after whatever the
		// server said before: that is worth more than that it closed.
		sent <- err
	}()
	err = receive(c)
	cancel()
	_ = conn.Close() // all that could fail here was read or is in err
	unsent := <-sent
	return s.judge(ctx, err, unsent, answer)
}

// judge makes the caller's error of the two of a call that had so long to answer.
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

// explain says what it means that reading failed with err, and sending with
// unsent if it did.
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
