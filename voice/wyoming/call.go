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

// fault is the error for a server that cannot be used. It wraps voice.ErrUnavailable, so that
// the next engine is tried.
type fault struct {
	server  string // address; "" if no server was found
	message string // the cause, and what to do about it
	cause   error
}

// Error returns a sentence with the server and the message.
func (f *fault) Error() string {
	if f.server == "" {
		return fmt.Sprintf("%v: %s", voice.ErrUnavailable, f.message)
	}
	return fmt.Sprintf("%v: the Wyoming server at %s: %s", voice.ErrUnavailable, f.server, f.message)
}

// Unwrap returns voice.ErrUnavailable and the cause.
func (f *fault) Unwrap() []error { return []error{voice.ErrUnavailable, f.cause} }

// call is a request to a server. Each call has its own connection. One goroutine sends, and
// another one receives.
type call struct {
	conn    net.Conn
	r       *Reader
	w       *Writer
	timeout time.Duration // timeout of the server: to read input, to begin its response, and to continue it
	empty   int           // consecutive events without content

	mu           sync.Mutex
	deadline     time.Time // read deadline that startTimeout or extend has set; zero before startTimeout
	listenerSlow bool      // whether the call waits for the listener, which is the caller's function out
}

// send writes an event. It fails if the server does not read it within the timeout.
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

// setWriteDeadline sets the deadline of the next write, unless the listener is slow.
func (c *call) setWriteDeadline() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listenerSlow {
		return nil
	}
	return c.conn.SetWriteDeadline(time.Now().Add(c.timeout))
}

// waitListener calls listen, which passes sound to the listener and may take minutes. During the
// call there is no write deadline: a server that cannot send its sound may not be able to read
// text either.
func (c *call) waitListener(listen func() error) error {
	c.setListenerSlow(true, time.Time{})
	err := listen()
	c.setListenerSlow(false, time.Now().Add(c.timeout))
	return err
}

func (c *call) setListenerSlow(slow bool, writeDeadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listenerSlow = slow
	_ = c.conn.SetWriteDeadline(writeDeadline) // if this fails, the next read fails, too
}

// startTimeout sets the read deadline. Recognition calls it when all sound was sent, and describe at once.
func (c *call) startTimeout() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.setReadDeadline(time.Now().Add(c.timeout))
}

// setReadDeadline sets the read deadline. The caller holds mu.
func (c *call) setReadDeadline(deadline time.Time) error {
	c.deadline = deadline
	return c.conn.SetReadDeadline(deadline)
}

// extend extends the read deadline by d, but at most to the whole timeout from now. It reports
// whether the new deadline is earlier than this maximum. It has no effect before startTimeout.
func (c *call) extend(d time.Duration) (earlier bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadline.IsZero() {
		return false, nil
	}
	latest := time.Now().Add(c.timeout)
	deadline := c.deadline.Add(d)
	if deadline.After(latest) {
		deadline = latest
	}
	return deadline.Before(latest), c.setReadDeadline(deadline)
}

// maxEmpty is the maximum number of consecutive events without sound or text. Servers may
// send a few per second while they listen.
const maxEmpty = 1000

// read returns the next event, or the message of an error event as an error. It fails after
// maxEmpty consecutive events without content; callers reset c.empty after an event with content.
func (c *call) read() (Event, error) {
	e, err := c.r.Read()
	if err != nil {
		return e, err
	}
	if c.empty++; c.empty > maxEmpty {
		return e, reason("its events contain neither sound nor text; is it a Wyoming server?")
	}
	if e.Type != TypeError {
		return e, nil
	}
	var f Failure
	if err := e.Decode(&f); err != nil {
		return Event{}, err
	}
	text := printable(f.Text)
	if f.Code != "" {
		text += " (" + printable(f.Code) + ")" // piper's text is just the name of a voice that it cannot load
	}
	return Event{}, reason("it says: " + text)
}

// reason is an error that becomes the message of a fault.
type reason string

// Error returns the reason.
func (r reason) Error() string { return string(r) }

// listenerError is an error of the listener. The call returns that error unchanged, because the
// server is not its cause.
type listenerError struct{ error }

// grace is the time that a call waits for a response when the server has stopped reading: the
// response may explain why.
const grace = 100 * time.Millisecond

// call connects to the server within the timeout connect, and calls send and receive
// concurrently. The context of send ends when receive has returned. response becomes
// call.timeout. If ctx ends, call closes the connection and returns ctx's error.
func (s *server) call(ctx context.Context, connect, response time.Duration, send func(context.Context, *call) error,
	receive func(*call) error) error {
	conn, err := s.endpoint.dial(ctx, connect)
	if err != nil {
		if ctx.Err() == nil {
			s.cachedInfo.Forget()
		}
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	c := &call{conn: conn, r: NewReader(conn, Limits{}), w: NewWriter(conn), timeout: response}
	sent := make(chan error, 1)
	go func() {
		err := send(inner, c)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			_ = conn.SetReadDeadline(time.Now().Add(grace))
		}
		// On other errors the connection is broken. Then receive fails too, perhaps after an
		// error event of the server, which explains more than err.
		sent <- err
	}()
	err = receive(c)
	cancel()
	_ = conn.Close()
	sendErr := <-sent
	return s.callError(ctx, err, sendErr, response)
}

// callError returns the error of a call with this timeout, from the errors of receive and
// send.
func (s *server) callError(ctx context.Context, receiveErr, sendErr error, timeout time.Duration) error {
	var listenerErr listenerError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case receiveErr == nil:
		return nil
	case errors.As(receiveErr, &listenerErr):
		return listenerErr.error
	}
	s.cachedInfo.Forget()
	return s.newFault(explain(receiveErr, sendErr, timeout), receiveErr)
}

func (s *server) newFault(message string, cause error) error {
	return &fault{s.endpoint.String(), message, cause}
}

// explain returns the message for a call that has failed. sendErr may be nil.
func explain(receiveErr, sendErr error, timeout time.Duration) string {
	var r reason
	switch {
	case errors.As(receiveErr, &r):
		return r.Error()
	case errors.Is(receiveErr, ErrFormat):
		return receiveErr.Error() + "; is another program on that port?"
	case !errors.Is(receiveErr, os.ErrDeadlineExceeded):
		return "it closed the connection before it had answered; its own log may say why"
	case errors.Is(sendErr, os.ErrDeadlineExceeded):
		return fmt.Sprintf("it read nothing for %s; is it overloaded?", timeout)
	}
	return fmt.Sprintf("it did not answer within %s; is it overloaded, or still loading its model?", timeout)
}
