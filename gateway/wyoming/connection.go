package wyoming

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	wire "perch/voice/wyoming"

	"perch/limit"
)

// Limits of one connection.
const (
	idleFor     = time.Minute      // without a whole event, while no answer is owed
	writeWithin = 10 * time.Second // for writing one event
	mostQueued  = 4                // waiting requests
	lingerFor   = time.Second      // for the client to read why the connection closes
	lingerMost  = 1 << 20          // bytes accepted from the client in that time
)

// limits bound a client's events. An utterance may come in one piece.
var limits = wire.Limits{Header: 64 << 10, Data: 64 << 10, Payload: 1 << 20}

// connection is the connection of one client. One goroutine reads, to notice when the client
// leaves during an answer; another executes the requests in order, because the protocol's
// answers have no IDs.
type connection struct {
	*service    // as at the start of the connection
	s           *Server
	conn        net.Conn
	r           *wire.Reader
	log         *slog.Logger
	jobs        chan job
	writeWithin time.Duration

	writing sync.Mutex
	w       *wire.Writer

	owing sync.Mutex // guards owed, over and the read deadline
	owed  int        // answers to complete requests
	over  bool       // nothing more is read

	// For the reading goroutine only.
	asked     wire.Transcribe // for the sound that follows
	listening *listening      // the utterance that is coming
	synthesis *synthesis      // the text that is coming
	own       string          // the name of a conversation without one
}

// job answers one request. An error ends the connection.
type job func(ctx context.Context) error

func newConnection(s *Server, serves *service, conn net.Conn) *connection {
	return &connection{
		service: serves, s: s, conn: conn, r: wire.NewReader(conn, limits), w: wire.NewWriter(conn), writeWithin: writeWithin,
		jobs: make(chan job, mostQueued), log: s.log.With("address", conn.RemoteAddr().String()),
	}
}

// run serves the client until it leaves, fails or ctx ends.
func (c *connection) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	defer stop()
	defer c.conn.Close()
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := c.work(working)
		c.endReading()
		ended <- err
	}()
	err := c.read()
	cancel()
	if c.listening != nil {
		c.listening.limit.Stop()
	}
	if failed := <-ended; failed != nil {
		err = failed // the cause of the end of reading
	}
	if ctx.Err() == nil {
		c.explain(err)
	}
}

// work executes the jobs in order.
func (c *connection) work(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case answer := <-c.jobs:
			if err := answer(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		case <-ctx.Done():
		}
	}
	return nil
}

// queue adds a job. It returns a failure if too many wait.
func (c *connection) queue(j job) error {
	select {
	case c.jobs <- j:
		return nil
	default:
		return &failure{code: codeBusy, text: "Too many requests at once; wait for an answer."}
	}
}

// request queues the job of a complete request.
func (c *connection) request(j job) error {
	c.countOwed(1)
	return c.queue(func(ctx context.Context) error {
		defer c.countOwed(-1)
		return j(ctx)
	})
}

// countOwed counts the answers owed, and sets the deadline of the next event: while an answer
// is owed the client may be silent.
func (c *connection) countOwed(n int) {
	c.owing.Lock()
	defer c.owing.Unlock()
	c.owed += n
	var deadline time.Time
	if c.owed == 0 {
		deadline = time.Now().Add(idleFor)
	}
	if !c.over {
		_ = c.conn.SetReadDeadline(deadline) // reading returns the error
	}
}

// endReading makes the reading goroutine return.
func (c *connection) endReading() {
	c.owing.Lock()
	defer c.owing.Unlock()
	c.over = true
	_ = c.conn.SetReadDeadline(time.Unix(1, 0))
}

// send makes and writes an event.
func (c *connection) send(name string, data any, payload []byte) error {
	e, err := wire.NewEvent(name, data, payload)
	if err != nil {
		return err
	}
	return c.write(e)
}

func (c *connection) write(e wire.Event) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	err := c.conn.SetWriteDeadline(time.Now().Add(c.writeWithin))
	if err == nil {
		err = c.w.Write(e)
	}
	if err != nil {
		return writeError{err}
	}
	return nil
}

// writeError is the error of a client that does not read.
type writeError struct{ error }

func (w writeError) Unwrap() error { return w.error }

// read handles events until an error.
func (c *connection) read() error {
	for {
		c.countOwed(0)
		e, err := c.r.Read()
		if err != nil {
			return err
		}
		if err := c.handleEvent(e); err != nil {
			return err
		}
	}
}

// handleEvent handles one event. Unknown types are ignored.
func (c *connection) handleEvent(e wire.Event) error {
	switch e.Type {
	case wire.TypeDescribe:
		return c.write(c.info)
	case wire.TypePing:
		return c.pong(e)
	case wire.TypeTranscribe, wire.TypeAudioStart, wire.TypeAudioChunk, wire.TypeAudioStop:
		if c.o.Recognizer == nil {
			return notServed("speech to text")
		}
		return c.handleSound(e)
	case wire.TypeSynthesize, wire.TypeSynthesizeStart, wire.TypeSynthesizeChunk, wire.TypeSynthesizeStop:
		if c.o.Synthesizer == nil {
			return notServed("text to speech")
		}
		return c.handleText(e)
	case wire.TypeTranscript:
		if c.o.Mind == nil {
			return notServed("answer to text")
		}
		return c.handleTranscript(e)
	}
	return nil
}

func notServed(what string) error {
	return &failure{code: codeNone, text: fmt.Sprintf("There is no %s here; describe says what is served.", what)}
}

// pong returns the text of a ping, which may be absent.
func (c *connection) pong(e wire.Event) error {
	var ping struct {
		Text *string `json:"text"`
	}
	if err := decode(e, &ping); err != nil {
		return err
	}
	if ping.Text == nil {
		return c.send(wire.TypePong, nil, nil)
	}
	if len(*ping.Text) > limit.Said {
		return tooLong()
	}
	return c.send(wire.TypePong, wire.Text{Text: *ping.Text}, nil)
}

func tooLong() error {
	return &failure{code: codeLength, text: fmt.Sprintf("That is more text than the %d bytes that are taken at once.", limit.Said)}
}

// explain tells the client why the connection closes.
func (c *connection) explain(err error) {
	var f *failure
	var lost writeError
	switch {
	case errors.As(err, &f):
	case errors.As(err, &lost):
		c.log.Debug("a Wyoming client took nothing more", "err", err)
		return
	case errors.Is(err, wire.ErrFormat):
		f = &failure{codeFormat, "That is not the Wyoming protocol, or too large.", err}
	case errors.Is(err, os.ErrDeadlineExceeded):
		f = &failure{code: codeIdle, text: fmt.Sprintf("Nothing came for %s.", idleFor)}
	default:
		return // the client has left
	}
	if f.code == codeFailed {
		c.log.Warn("a Wyoming request failed", "err", f)
	} else {
		c.log.Debug("a Wyoming connection is closed", "err", f)
	}
	if c.send(wire.TypeError, wire.Failure{Text: f.text, Code: f.code}, nil) == nil {
		c.linger()
	}
}

// linger discards what the client still sends. Closing with unread data would reset the
// connection, and lose what was sent last.
func (c *connection) linger() {
	half, ok := c.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.conn.SetReadDeadline(time.Now().Add(lingerFor)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.conn, lingerMost) // any error ends it
}
