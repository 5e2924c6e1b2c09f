package skin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/event"
	"perch/gateway/avatar"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/socket"
)

// skin is a connected skin. One goroutine receives commands, another sends frames.
type skin struct {
	server *Server
	conn   *socket.Conn
	log    *slog.Logger
	view   *feed.Viewer

	address string
	since   time.Time

	ended chan struct{} // closed once read has returned
}

// timings are the intervals and timeouts of a connection; tests shorten them.
type timings struct {
	ping  time.Duration // interval between pings
	quiet time.Duration // the connection is dropped after this time without a message or pong
	send  time.Duration // maximum time for sending one frame
}

// defaultTimings returns the timings outside tests.
func defaultTimings() timings {
	return timings{ping: 20 * time.Second, quiet: 50 * time.Second, send: 5 * time.Second}
}

// smallBuffer is the size of a connection's buffer in bytes. Nearly every frame fits in it.
const smallBuffer = 1024

// maxCommands is the maximum number of commands per second from one skin.
const maxCommands = 50

// open upgrades a request and serves the skin on other goroutines.
func (s *Server) open(w http.ResponseWriter, r *http.Request) error {
	remote := r.RemoteAddr
	return avatar.Accept(s.serving, w, r, socket.Options{
		MaxMessage: limit.Question, SendWithin: s.timings.send, Quiet: s.timings.quiet, Buffer: smallBuffer, PerSecond: maxCommands,
		Subprotocols: []string{avatar.Subprotocol},
	}, func(ctx context.Context, conn *socket.Conn) {
		one := &skin{server: s, conn: conn, ended: make(chan struct{}), address: remote, since: time.Now(), log: s.o.Log.With("address", remote),
			view: s.o.Feed.Join(feed.Filter{Kinds: feed.RFCKinds(), Vocabulary: s.o.Vocabulary})}
		s.setConnected(one, true)
		s.o.Bus.Publish("", "", event.Changed{What: "connections"})
		one.serve(ctx)
		s.o.Bus.Publish("", "", event.Changed{What: "connections"})
	})
}

// serve serves the skin until it disconnects or ctx ends. It returns once both goroutines have
// ended.
func (s *skin) serve(ctx context.Context) {
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { // blocks if the skin does not read
		defer close(closed)
		s.conn.Close(socket.GoingAway, httpserver.GoingAway)
	})
	defer func() {
		if !stop() {
			<-closed
		}
	}()
	var sending sync.WaitGroup
	sending.Go(s.write)
	s.read()
	sending.Wait()
}

// read carries out commands until the connection ends.
func (s *skin) read() {
	defer s.conn.Drop() // aborts a blocked send
	defer close(s.ended)
	defer s.server.setConnected(s, false)
	defer s.view.Leave()
	for {
		isText, text, err := s.conn.Receive()
		switch {
		case errors.Is(err, socket.ErrTooBig):
			s.log.Info("disconnecting a skin that sent too large a command", "limit", limit.Question)
			return
		case err != nil:
			return
		case !isText:
			s.view.Send(newErrorFrame(time.Now(), badCommand("a command must be a text message, not a binary one")))
			continue
		}
		s.runCommand(text)
	}
}

// runCommand carries out a command, and sends the skin a pong or an error.
func (s *skin) runCommand(text []byte) {
	o := s.server.o
	c, bad := parseCommand(text, o.Vocabulary, o.Words, o.Find)
	now := time.Now()
	switch c.kind {
	case "ping":
		s.view.Send(newPongFrame(now))
	case "subscribe":
		s.view.Subscribe(c.filter)
	case "ack":
		bad = s.commandError(s.server.o.Notifier.Acknowledge(c.id), "could not acknowledge a notification")
	case "answer":
		bad = s.commandError(s.server.o.Questions.Reply(c.id, c.allow), "could not answer a question")
	}
	if bad != nil {
		s.view.Send(newErrorFrame(now, bad))
	}
}

// commandError converts the error of carrying out a command to the error that is sent to the skin. It
// returns nil if err is nil. An unexpected error is logged with the message logMessage, and its text
// is not disclosed.
func (s *skin) commandError(err error, logMessage string) *commandError {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, notice.ErrNotFound):
		return &commandError{"unknown_notification", "there is no such notification; it was acknowledged already, or has expired"}
	case errors.Is(err, agent.ErrNoQuestion):
		return &commandError{"unknown_question", "no question with that id is open; it was answered already, or has expired"}
	}
	s.log.Error(logMessage, "err", err)
	return &commandError{"internal", "internal error; the appliance's log says more"}
}

// write sends frames and pings until the connection ends.
func (s *skin) write() {
	defer s.conn.Drop()
	ticker := time.NewTicker(s.server.timings.ping)
	defer ticker.Stop()
	for {
		select {
		case <-s.view.News():
			if !s.flush(ticker.C) {
				return
			}
		case <-ticker.C:
			if s.conn.Ping() != nil {
				return
			}
		case <-s.ended:
			return
		}
	}
}

// flush sends all queued frames. It also sends a ping for each value from pings, because a
// long queue may take longer than the interval between pings. It returns false if the
// connection has ended.
func (s *skin) flush(pings <-chan time.Time) (connected bool) {
	for {
		select {
		case <-pings:
			if s.conn.Ping() != nil {
				return false
			}
		default:
		}
		f, late := s.view.Pop()
		switch {
		case late:
			s.log.Info("disconnecting a skin that does not read fast enough")
			s.conn.Close(socket.TryLater, "you do not read fast enough; reconnect to get a snapshot")
			return false
		case f == nil:
			return true
		}
		if s.conn.SendText(f.Data) != nil {
			return false // write drops the connection, which ends read
		}
		s.view.MarkShown(f)
	}
}
