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
	name      string        // name of the conversation that the program has joined
	session   string        // session ID in the events of that conversation
	character string        // name of the character that replies, as in Chat.Chat; may be empty
	out       chan []byte   // encoded messages that write sends
	greeted   chan struct{} // closed once Program.Greet has succeeded

	// The current reply. Only the goroutine that receives messages may use these fields.
	cancelReply context.CancelFunc // nil before the first reply and after Interrupt
	replyEnded  chan struct{}      // closed once the reply's goroutine has ended
	replyDone   *atomic.Bool       // true once the reply is complete or interrupted
}

// Session returns the session ID in the events of the program's conversation.
func (c *Conn) Session() string { return c.session }

// Log returns a logger that adds the program's address to each entry.
func (c *Conn) Log() *slog.Logger { return c.log }

// serve serves the program until it disconnects or ctx ends. It returns once all goroutines
// of the connection have ended.
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
		c.log.Info("disconnecting a program", "kind", c.server.o.Kind, "err", err)
	}
	if stop() {
		c.socket.Drop() // closes the connection, and aborts a blocked send
	} else {
		<-closed
	}
	cancel()
	c.Interrupt()
	sending.Wait()
}

// read greets the program, and handles messages until the connection ends. It returns an error if
// greeting the program or handling a message fails, if the program sends too large a message, or if the
// program sends neither a message nor a pong for quietFor. It returns nil if the connection has ended otherwise.
func (c *Conn) read(ctx context.Context) error {
	if err := c.program.Greet(ctx); err != nil {
		return fmt.Errorf("greet the program: %w", err)
	}
	close(c.greeted)
	for ctx.Err() == nil {
		isText, message, err := c.socket.Receive()
		switch {
		case errors.Is(err, socket.ErrTooBig):
			return fmt.Errorf("the program sent a message of more than %d bytes", limit.Message)
		case errors.Is(err, socket.ErrQuiet):
			return fmt.Errorf("the program sent neither a message nor a pong for %s", quietFor)
		case err != nil:
			return nil
		case !isText:
			continue // no protocol of avatar programs has binary messages
		}
		if err := c.program.Handle(ctx, message); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// write sends messages, frames and pings until ctx ends or sending fails. It sends no frames
// before Program.Greet has succeeded.
func (c *Conn) write(ctx context.Context) {
	ping := time.NewTicker(pingEvery)
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

// errLate is the error of sendFrames if too many frames were queued for the program.
var errLate = errors.New("the program does not read fast enough")

// sendFrames sends messages for all queued frames, except for frames that Program.MessageFor skips. If
// too many frames were queued, it closes the connection and returns errLate.
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
		c.view.MarkShown(f)
	}
}

// Send sends a message. It blocks until the writing goroutine has accepted the message or
// ctx ends.
func (c *Conn) Send(ctx context.Context, message any) error {
	select {
	case c.out <- httpserver.Encode(message):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// StartReply interrupts the current reply, waits for its end, and runs reply on a new
// goroutine. The result of reply is sent as the last message, unless it is nil or the reply
// was interrupted. Only the goroutine that receives messages may call StartReply.
func (c *Conn) StartReply(ctx context.Context, reply func(ctx context.Context) (last any)) {
	c.Interrupt()
	replyCtx, cancel := context.WithCancel(ctx)
	ended, done := make(chan struct{}), &atomic.Bool{}
	c.cancelReply, c.replyEnded, c.replyDone = cancel, ended, done
	go func() {
		defer close(ended)
		if last := reply(replyCtx); done.CompareAndSwap(false, true) && last != nil {
			_ = c.Send(ctx, last) // fails only if the connection is ending
		}
	}()
}

// Interrupt cancels the current reply and waits for its end. It returns false if no reply was in
// progress, or if only the last message of the reply remained to be sent. Only the goroutine that
// receives messages may call Interrupt.
func (c *Conn) Interrupt() (interrupted bool) {
	if c.cancelReply == nil {
		return false
	}
	interrupted = c.replyDone.CompareAndSwap(false, true)
	c.cancelReply()
	<-c.replyEnded
	c.cancelReply = nil
	return interrupted
}

// Chat sends text to the agent in the program's conversation, and passes each part of the reply to
// handle. If handle returns an error, the turn ends.
func (c *Conn) Chat(ctx context.Context, text string, handle func(agent.Reply) error) error {
	return c.server.o.Chat.Chat(ctx, c.name, c.character, text, handle)
}

// ErrorText returns the text to send to the program for an error that Chat returned. If the error
// has no Code method, ErrorText logs it, and returns a text that does not disclose it.
func (c *Conn) ErrorText(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return err.Error()
	}
	c.log.Warn("the agent could not answer a program", "kind", c.server.o.Kind, "err", err)
	return "the agent could not answer; the log of the appliance says why"
}
