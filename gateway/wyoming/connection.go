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

	"perch/gateway/httpserver"
	"perch/limit"
)

// Limits of one connection.
const (
	idleTimeout    = time.Minute      // how long the client may take to send a complete event; there is no limit while it waits for a response
	writeTimeout   = 10 * time.Second // for writing an event
	maxQueued      = 4                // requests that may wait while an earlier one is executed
	lingerTimeout  = time.Second      // for the client to read the last event before the connection is closed
	maxLingerBytes = 1 << 20          // bytes from the client that are read and discarded during lingerTimeout
)

// limits are the maximum sizes of the parts of a received event, in bytes. A payload may be a whole utterance.
var limits = wire.Limits{Header: 64 << 10, Data: 64 << 10, Payload: 1 << 20}

// connection is the connection of a client. One goroutine reads events, so that it notices when the client disconnects during a
// response. Another one executes the requests in order, because responses have no IDs.
type connection struct {
	*service     // configuration of the server when the connection was accepted
	s            *Server
	conn         net.Conn
	r            *wire.Reader
	log          *slog.Logger
	jobs         chan job
	writeTimeout time.Duration

	writing sync.Mutex // guards w and the write deadline
	w       *wire.Writer

	owing sync.Mutex // guards owed, over and the read deadline
	owed  int        // number of responses that the client waits for; a text to be spoken has one for each sentence and one for its end
	over  bool       // endReading was called

	// Only the reading goroutine uses the following fields.

	transcribe wire.Transcribe // options of the next utterance
	judging    bool            // whether the next or present utterance is judged instead of recognized
	listening  *listening      // the utterance that is being received; nil between utterances
	synthesis  *synthesis      // the text that is being received as a stream; nil between texts
	own        string          // ID of the conversation of texts that name no conversation; empty before the first such text
}

// job executes a request. An error ends the connection.
type job func(ctx context.Context) error

func newConnection(s *Server, service *service, conn net.Conn) *connection {
	return &connection{
		service: service, s: s, conn: conn, r: wire.NewReader(conn, limits), w: wire.NewWriter(conn), writeTimeout: writeTimeout,
		jobs: make(chan job, maxQueued), log: s.log.With("address", conn.RemoteAddr().String()),
	}
}

// run serves the client until the client disconnects, an error occurs, or ctx ends.
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
		err = failed // the reason why reading has ended
	}
	if ctx.Err() == nil {
		c.explain(err)
	}
}

// work executes jobs in order until a job returns an error or ctx ends.
func (c *connection) work(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case execute := <-c.jobs:
			if err := execute(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		case <-ctx.Done():
		}
	}
	return nil
}

// queue queues a job. It returns a failure if too many jobs are waiting.
func (c *connection) queue(j job) error {
	select {
	case c.jobs <- j:
		return nil
	default:
		return &failure{code: codeBusy, text: "Too many requests at once; wait for a response."}
	}
}

// request queues the job of a request that consists of a single event, and counts its response as owed.
func (c *connection) request(j job) error {
	c.countOwed(1)
	return c.queue(func(ctx context.Context) error {
		defer c.countOwed(-1)
		return j(ctx)
	})
}

// countOwed adds n to the number of owed responses, and sets the deadline of the next event. There is no deadline while a
// response is owed.
func (c *connection) countOwed(n int) {
	c.owing.Lock()
	defer c.owing.Unlock()
	c.owed += n
	var deadline time.Time
	if c.owed == 0 {
		deadline = time.Now().Add(idleTimeout)
	}
	if !c.over {
		_ = c.conn.SetReadDeadline(deadline) // after an error the next read fails too
	}
}

// endReading makes the reading goroutine return.
func (c *connection) endReading() {
	c.owing.Lock()
	defer c.owing.Unlock()
	c.over = true
	_ = c.conn.SetReadDeadline(time.Unix(1, 0))
}

func (c *connection) send(name string, data any, payload []byte) error {
	e, err := wire.NewEvent(name, data, payload)
	if err != nil {
		return err
	}
	return c.write(e)
}

// write writes an event. Its error is a writeError.
func (c *connection) write(e wire.Event) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	err := c.conn.SetWriteDeadline(time.Now().Add(c.writeTimeout))
	if err == nil {
		err = c.w.Write(e)
	}
	if err != nil {
		return writeError{err}
	}
	return nil
}

// writeError is the error of writing to a client that does not read or has disconnected.
type writeError struct{ error }

// Unwrap returns the underlying error.
func (w writeError) Unwrap() error { return w.error }

// read reads and handles events until an error occurs.
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

// handleEvent handles an event. It ignores events of unknown types.
func (c *connection) handleEvent(e wire.Event) error {
	switch e.Type {
	case wire.TypeDescribe:
		return c.write(c.info)
	case wire.TypePing:
		return c.pong(e)
	case wire.TypeTurn:
		if c.o.Judge == nil {
			return notServed("judgement of turns")
		}
		c.judging = true
	case wire.TypeTranscribe, wire.TypeAudioStart, wire.TypeAudioChunk, wire.TypeAudioStop:
		if len(c.o.Recognizers) == 0 && !c.judging {
			return notServed("speech to text")
		}
		return c.handleSound(e)
	case wire.TypeSynthesize, wire.TypeSynthesizeStart, wire.TypeSynthesizeChunk, wire.TypeSynthesizeStop:
		if len(c.o.Synthesizers) == 0 {
			return notServed("text to speech")
		}
		return c.handleText(e)
	case wire.TypeTranscript:
		if c.o.Mind == nil {
			return notServed("conversation agent")
		}
		return c.handleTranscript(e)
	}
	if handle, known := c.o.Local[e.Type]; known {
		if !httpserver.PeerOf(c.conn.RemoteAddr().String()).IsLoopback() {
			return &failure{code: codeLocal, text: "Only programs on the same machine may ask for this."}
		}
		e.Payload = nil // it is valid until the next event only
		return c.request(func(ctx context.Context) error {
			return handle(ctx, e, func(name string, data any) error { return c.send(name, data, nil) })
		})
	}
	return nil
}

// notServed returns the failure for a service that is not offered.
func notServed(service string) error {
	return &failure{code: codeNone, text: fmt.Sprintf("This server offers no %s; a describe event returns what it offers.", service)}
}

// pong responds to a ping, with the text of the ping if it has one.
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
	return &failure{code: codeLength, text: fmt.Sprintf("The text has more than %d bytes.", limit.Said)}
}

// explain sends the client a description of the error that ends the connection, and logs the error. It only logs an error
// of writing, and ignores the error of reading from a client that has disconnected.
func (c *connection) explain(err error) {
	var f *failure
	var lost writeError
	switch {
	case errors.As(err, &f):
	case errors.As(err, &lost):
		c.log.Debug("cannot write to a Wyoming client", "err", err)
		return
	case errors.Is(err, wire.ErrFormat):
		f = &failure{codeFormat, "The event is invalid or too large.", err}
	case errors.Is(err, os.ErrDeadlineExceeded):
		f = &failure{code: codeIdle, text: fmt.Sprintf("No complete event was received for %s.", idleTimeout)}
	default:
		return // the client has disconnected
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

// linger discards data from the client until the client closes the connection, at most for lingerTimeout. If the server
// closed the connection while there is unread data, the kernel would reset the connection, and the client might not
// receive the last event.
func (c *connection) linger() {
	half, ok := c.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.conn.SetReadDeadline(time.Now().Add(lingerTimeout)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.conn, maxLingerBytes) // returns when the client closes the connection, or at a limit
}
