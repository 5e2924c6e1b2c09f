package avatar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/socket"
)

// Conn is the connection of one program.
type Conn struct {
	server    *Server
	socket    *socket.Conn
	program   Program
	view      *feed.Viewer
	log       *slog.Logger
	talk      string
	session   string // under which the talk is published
	character string
	out       chan []byte   // messages for write
	greeted   chan struct{} // closed after Greet

	// The current answer. These fields belong to the goroutine that receives.
	interrupt context.CancelFunc // nil without an answer
	answered  chan struct{}      // closed when the answer has ended
	over      *atomic.Bool       // set by the answer before its last message, or else by Interrupt
}

// Session returns the session under which the program's talk is published.
func (c *Conn) Session() string { return c.session }

// Log returns the server's logger with the program's address.
func (c *Conn) Log() *slog.Logger { return c.log }

// serve serves the program until it leaves or ctx ends, and waits for all its goroutines.
func (c *Conn) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.view.Leave()
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		c.socket.Close(socket.GoingAway, httpserver.GoingAway)
	})
	var sending sync.WaitGroup
	sending.Go(func() {
		defer cancel()
		c.write(ctx)
	})
	if err := c.read(ctx); err != nil {
		c.log.Info("a program is disconnected", "kind", c.server.o.Kind, "err", err)
	}
	if stop() {
		c.socket.Drop() // aborts a blocked send
	} else {
		<-closed
	}
	cancel()
	c.Interrupt()
	sending.Wait()
}

// read handles messages until the connection ends. It returns an error if the program has
// to be disconnected.
func (c *Conn) read(ctx context.Context) error {
	if err := c.program.Greet(ctx); err != nil {
		return fmt.Errorf("greet it: %w", err)
	}
	close(c.greeted)
	for ctx.Err() == nil {
		isText, message, err := c.socket.Receive()
		switch {
		case errors.Is(err, socket.ErrTooBig):
			return fmt.Errorf("a message of more than %d bytes came", limit.Message)
		case err != nil:
			return nil
		case !isText:
			continue // neither protocol uses binary messages
		}
		if err := c.program.Handle(ctx, message); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// write sends messages and frames until ctx ends or sending fails. Frames wait until the
// program is greeted.
func (c *Conn) write(ctx context.Context) {
	ping := time.NewTicker(c.server.paces.ping)
	defer ping.Stop()
	greeted, news := c.greeted, (<-chan struct{})(nil)
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case message := <-c.out:
			err = c.socket.SendText(message)
		case <-greeted:
			greeted, news = nil, c.view.News()
		case <-news:
			err = c.sendFrames()
		case <-ping.C:
			err = c.socket.Ping()
		}
		if err != nil {
			c.socket.Drop() // ends read
			return
		}
	}
}

// errLate ends write: too many frames wait for the program.
var errLate = errors.New("the program does not read fast enough")

// sendFrames sends the frames that wait.
func (c *Conn) sendFrames() error {
	for {
		f, late := c.view.Pop()
		switch {
		case late:
			c.socket.Close(socket.TryLater, "you do not read fast enough; come back")
			return errLate
		case f == nil:
			return nil
		}
		message := c.program.MessageFor(f)
		if message == nil {
			continue
		}
		if err := c.socket.SendText(httpserver.Encode(message)); err != nil {
			return err
		}
		c.view.Shown(f)
	}
}

// Send sends a message. It blocks while other messages are being sent, until ctx ends.
func (c *Conn) Send(ctx context.Context, message any) error {
	select {
	case c.out <- httpserver.Encode(message):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Answer interrupts the current answer, waits for its end, and runs answer on a new
// goroutine. It sends the result, the last message, unless that is nil or the answer was
// interrupted. Only the goroutine that receives may call it.
func (c *Conn) Answer(ctx context.Context, answer func(ctx context.Context) (last any)) {
	c.Interrupt()
	answering, interrupt := context.WithCancel(ctx)
	answered, over := make(chan struct{}), &atomic.Bool{}
	c.interrupt, c.answered, c.over = interrupt, answered, over
	go func() {
		defer close(answered)
		if last := answer(answering); over.CompareAndSwap(false, true) && last != nil {
			_ = c.Send(ctx, last) // the program may have left
		}
	}()
}

// Interrupt ends the current answer and waits until it has ended. It reports whether it
// interrupted one: an answer that only has its last message to send is not interrupted.
// Only the goroutine that receives may call it.
func (c *Conn) Interrupt() (interrupted bool) {
	if c.interrupt == nil {
		return false
	}
	interrupted = c.over.CompareAndSwap(false, true)
	c.interrupt()
	<-c.answered
	c.interrupt = nil
	return interrupted
}

// Chat has a text answered in the program's talk, and passes the replies to take.
func (c *Conn) Chat(ctx context.Context, text string, take func(agent.Reply) error) error {
	return c.server.o.Chat.Chat(ctx, c.talk, c.character, text, take)
}

// ErrorText returns an error of Chat as text for the program. The text of an error without
// a Code is not disclosed; it is logged.
func (c *Conn) ErrorText(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return err.Error()
	}
	c.log.Warn("a program's question was not answered", "kind", c.server.o.Kind, "err", err)
	return "the agent could not answer; the log of the appliance says why"
}
