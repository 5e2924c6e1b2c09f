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
	session   string // in which the talk shows
	character string
	out       chan []byte   // what is sent next
	greeted   chan struct{} // closed once the greeting was sent

	// Of the goroutine that receives: the answer under way.
	interrupt context.CancelFunc // nil is none
	answered  chan struct{}      // closed when it has ended
	over      *atomic.Bool       // set, once, by who ends it: itself, before its last message, or Interrupt
}

// Session is the one in which the program's talk shows.
func (c *Conn) Session() string { return c.session }

// Log is the door's, with the address of the program.
func (c *Conn) Log() *slog.Logger { return c.log }

// serve serves the program until it leaves or ctx ends, and leaves nothing behind.
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
		c.socket.Drop() // which ends a message on its way
	} else {
		<-closed
	}
	cancel()
	c.Interrupt()
	sending.Wait()
}

// read takes messages until the connection ends. An error is that of a program that is
// disconnected.
func (c *Conn) read(ctx context.Context) error {
	if err := c.program.Greet(ctx); err != nil {
		return fmt.Errorf("greet it: %w", err)
	}
	close(c.greeted)
	for ctx.Err() == nil {
		isText, message, err := c.socket.Receive()
		switch {
		case errors.Is(err, socket.ErrTooBig):
			return fmt.Errorf("a message of more than %d bytes came", c.server.o.MostMessage)
		case err != nil:
			return nil
		case !isText:
			continue // neither protocol has any
		}
		if err := c.program.Handle(ctx, message); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// write sends what there is to send until ctx ends or the program does not take it.
// Nothing shows before the greeting.
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
			c.socket.Drop() // which ends the one that receives
			return
		}
	}
}

// errLate is the error of a program for which too much waits.
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
		told := c.program.MessageFor(f)
		if told == nil {
			continue
		}
		if err := c.socket.SendText(httpserver.Encode(told)); err != nil {
			return err
		}
		c.view.Shown(f)
	}
}

// Send sends a message. It waits while another is on its way, until ctx ends.
func (c *Conn) Send(ctx context.Context, message any) error {
	select {
	case c.out <- httpserver.Encode(message):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Answer has answer run on a goroutine of its own, and sends what it returns, the last
// message, unless it was interrupted before; nil is none. The answer before it is
// interrupted, and has ended then. Answer is for the goroutine that receives.
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

// Interrupt ends the answer under way, waits for its end, and reports whether there was
// one that had not ended by itself: of one that had, the last message is sent. It is for
// the goroutine that receives.
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

// Chat has a text answered in the program's talk, and passes on the replies.
func (c *Conn) Chat(ctx context.Context, text string, take func(agent.Reply) error) error {
	return c.server.o.Chat.Chat(ctx, c.talk, c.character, text, take)
}

// ErrorText is an error of Chat as a program is told it. The text of an error without a Code
// stays inside, and is logged.
func (c *Conn) ErrorText(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return err.Error()
	}
	c.log.Warn("a program's question was not answered", "kind", c.server.o.Kind, "err", err)
	return "the agent could not answer; the log of the appliance says why"
}
