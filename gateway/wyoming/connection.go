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
	idleFor     = time.Minute      // no whole event comes, and no answer is owed
	writeWithin = 10 * time.Second // one event of ours is taken
	mostQueued  = 4                // requests that wait for the one before
	lingerFor   = time.Second      // for the client to read why the connection closes
	lingerMost  = 1 << 20          // bytes that it may still send then
)

// limits of what a client sends: an utterance may come in one piece.
var limits = wire.Limits{Header: 64 << 10, Data: 64 << 10, Payload: 1 << 20}

// connection is one client's. One goroutine reads, so that a client that leaves
// is noticed while it is being answered; one works, request after request, as
// the protocol's answers have no ids.
type connection struct {
	*service    // as it was when the connection began
	s           *Server
	conn        net.Conn
	r           *wire.Reader
	log         *slog.Logger
	jobs        chan job
	writeWithin time.Duration

	writing sync.Mutex
	w       *wire.Writer

	owing sync.Mutex // guards these two and the read deadline
	owed  int        // answers whose requests are complete
	over  bool       // nothing more is read

	// Of the reading goroutine.
	asked     wire.Transcribe // for the sound that follows
	listening *listening      // sound that is coming
	synthesis *synthesis      // text that is coming, to be spoken
	own       string          // name of a conversation that has no other
}

// job is one request being answered. A failure ends the connection.
type job func(ctx context.Context) error

func newConnection(s *Server, serves *service, conn net.Conn) *connection {
	return &connection{
		service: serves, s: s, conn: conn, r: wire.NewReader(conn, limits), w: wire.NewWriter(conn), writeWithin: writeWithin,
		jobs: make(chan job, mostQueued), log: s.log.With("address", conn.RemoteAddr().String()),
	}
}

// run serves the client until it leaves, fails or ctx ends, and leaves nothing
// behind.
func (v *connection) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = v.conn.Close() })
	defer stop()
	defer v.conn.Close()
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := v.work(working)
		v.endReading()
		ended <- err
	}()
	err := v.read()
	cancel()
	if v.listening != nil {
		v.listening.limit.Stop()
	}
	if failed := <-ended; failed != nil {
		err = failed // reading ended because of it
	}
	if ctx.Err() == nil {
		v.explain(err)
	}
}

// work does the jobs in order.
func (v *connection) work(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case do := <-v.jobs:
			if err := do(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		case <-ctx.Done():
		}
	}
	return nil
}

// queue has a job done after those before it.
func (v *connection) queue(do job) error {
	select {
	case v.jobs <- do:
		return nil
	default:
		return &failure{code: codeBusy, text: "Too many requests at once; wait for an answer."}
	}
}

// request queues the answer of a complete request.
func (v *connection) request(do job) error {
	v.owe(1)
	return v.queue(func(ctx context.Context) error {
		defer v.owe(-1)
		return do(ctx)
	})
}

// owe counts answers. While one is owed the client may be silent.
func (v *connection) owe(n int) {
	v.owing.Lock()
	defer v.owing.Unlock()
	v.owed += n
	v.rest()
}

// rest sets how long the next event may take. The caller holds v.owing.
func (v *connection) rest() {
	switch {
	case v.over:
	case v.owed > 0:
		_ = v.conn.SetReadDeadline(time.Time{}) // reading meets what is wrong with it
	default:
		_ = v.conn.SetReadDeadline(time.Now().Add(idleFor))
	}
}

// endReading has the reading goroutine return.
func (v *connection) endReading() {
	v.owing.Lock()
	defer v.owing.Unlock()
	v.over = true
	_ = v.conn.SetReadDeadline(time.Unix(1, 0))
}

// send writes an event. If the client does not take it, the connection ends.
func (v *connection) send(name string, data any, payload []byte) error {
	e, err := wire.NewEvent(name, data, payload)
	if err != nil {
		return err
	}
	return v.write(e)
}

func (v *connection) write(e wire.Event) error {
	v.writing.Lock()
	defer v.writing.Unlock()
	if err := v.conn.SetWriteDeadline(time.Now().Add(v.writeWithin)); err != nil {
		return gone{err}
	}
	if err := v.w.Write(e); err != nil {
		return gone{err}
	}
	return nil
}

// gone is the error of a client that does not take what we write.
type gone struct{ error }

func (g gone) Unwrap() error { return g.error }

// read takes events until something is wrong with them.
func (v *connection) read() error {
	for {
		v.owe(0)
		e, err := v.r.Read()
		if err != nil {
			return err
		}
		if err := v.handleEvent(e); err != nil {
			return err
		}
	}
}

// handleEvent deals with one event. Unknown ones are ignored.
func (v *connection) handleEvent(e wire.Event) error {
	switch e.Type {
	case wire.TypeDescribe:
		return v.write(v.info)
	case wire.TypePing:
		return v.pong(e)
	case wire.TypeTranscribe, wire.TypeAudioStart, wire.TypeAudioChunk, wire.TypeAudioStop:
		if v.o.Recognizer == nil {
			return none("speech to text")
		}
		return v.takeSound(e)
	case wire.TypeSynthesize, wire.TypeSynthesizeStart, wire.TypeSynthesizeChunk, wire.TypeSynthesizeStop:
		if v.o.Synthesizer == nil {
			return none("text to speech")
		}
		return v.takeText(e)
	case wire.TypeTranscript:
		if v.o.Mind == nil {
			return none("answer to text")
		}
		return v.takeTranscript(e)
	}
	return nil
}

func none(what string) error {
	return &failure{code: codeNone, text: fmt.Sprintf("There is no %s here; describe says what is served.", what)}
}

// pong gives back the text of a ping, which may be absent.
func (v *connection) pong(e wire.Event) error {
	var ping struct {
		Text *string `json:"text"`
	}
	if err := decode(e, &ping); err != nil {
		return err
	}
	if ping.Text == nil {
		return v.send(wire.TypePong, nil, nil)
	}
	if len(*ping.Text) > limit.Said {
		return tooLong()
	}
	return v.send(wire.TypePong, wire.Text{Text: *ping.Text}, nil)
}

func tooLong() error {
	return &failure{code: codeLength, text: fmt.Sprintf("That is more text than the %d bytes that are taken at once.", limit.Said)}
}

// explain sends the client why the connection closes, where it still reads.
func (v *connection) explain(err error) {
	var f *failure
	var lost gone
	switch {
	case errors.As(err, &f):
	case errors.As(err, &lost):
		v.log.Debug("a Wyoming client took nothing more", "err", err)
		return
	case errors.Is(err, wire.ErrFormat):
		f = &failure{codeFormat, "That is not the Wyoming protocol, or too large.", err}
	case errors.Is(err, os.ErrDeadlineExceeded):
		f = &failure{code: codeIdle, text: fmt.Sprintf("Nothing came for %s.", idleFor)}
	default:
		return // the client has left
	}
	if f.code == codeFailed {
		v.log.Warn("a Wyoming request failed", "err", f)
	} else {
		v.log.Debug("a Wyoming connection is closed", "err", f)
	}
	if v.send(wire.TypeError, wire.Failure{Text: f.text, Code: f.code}, nil) == nil {
		v.linger()
	}
}

// linger reads on for a moment. To close with something unread resets the
// connection, and what was sent last is lost.
func (v *connection) linger() {
	half, ok := v.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || v.conn.SetReadDeadline(time.Now().Add(lingerFor)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, v.conn, lingerMost) // the connection closes whatever comes
}
