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

// skin is a connected skin. One goroutine receives its commands, another sends.
type skin struct {
	server *Server
	conn   *socket.Conn
	log    *slog.Logger
	view   *feed.Viewer

	address string
	since   time.Time

	ended chan struct{} // closed by the reader
}

// paces are the intervals of a connection; tests shorten them.
type paces struct {
	ping  time.Duration // between two pings
	quiet time.Duration // without any message or pong, after which the connection is broken
	send  time.Duration // the most that one frame may take
}

func usualPaces() paces {
	return paces{ping: 20 * time.Second, quiet: 50 * time.Second, send: 5 * time.Second}
}

// smallBuffer, in bytes, is enough for nearly every frame.
const smallBuffer = 1024

// mostCommands bounds the commands of one skin per second.
const mostCommands = 50

// open upgrades a request and serves the skin on other goroutines.
func (s *Server) open(w http.ResponseWriter, r *http.Request) error {
	remote := r.RemoteAddr
	return avatar.Accept(s.serving, w, r, socket.Options{
		MaxMessage: limit.Question, SendWithin: s.paces.send, Quiet: s.paces.quiet, Buffer: smallBuffer, PerSecond: mostCommands,
		Subprotocols: []string{avatar.Subprotocol},
	}, func(ctx context.Context, conn *socket.Conn) {
		one := &skin{server: s, conn: conn, ended: make(chan struct{}), address: remote, since: time.Now(), log: s.o.Log.With("address", remote),
			view: s.o.Feed.Join(feed.Filter{Kinds: feed.RFCKinds(), Words: s.o.Vocabulary})}
		s.setConnected(one, true)
		s.o.Bus.Publish("", "", event.Changed{What: "connections"})
		one.serve(ctx)
		s.o.Bus.Publish("", "", event.Changed{What: "connections"})
	})
}

// serve serves the skin until it leaves or ctx ends, and waits for both goroutines.
func (s *skin) serve(ctx context.Context) {
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { // may block, if the skin does not read
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
			s.log.Info("a skin sent a command that is too big; it is disconnected", "limit", limit.Question)
			return
		case err != nil:
			return
		case !isText:
			s.view.Send(newErrorFrame(time.Now(), badCommand("a command is a text message, this one is binary")))
			continue
		}
		s.run(text)
	}
}

// run carries out a command.
func (s *skin) run(text []byte) {
	o := s.server.o
	c, bad := parseCommand(text, o.Vocabulary, o.Words, o.Find)
	now := time.Now()
	switch c.kind {
	case "ping":
		s.view.Send(newPongFrame(now))
	case "subscribe":
		s.view.Subscribe(c.filter)
	case "ack":
		bad = s.refusal(s.server.o.Notifier.Acknowledge(c.id), "a notification was not acknowledged")
	case "answer":
		bad = s.refusal(s.server.o.Questions.Reply(c.id, c.allow), "a question was not answered") // the first answer counts
	}
	if bad != nil {
		s.view.Send(newErrorFrame(now, bad))
	}
}

// refusal returns the error of a command for the skin. An internal error is logged as failed.
func (s *skin) refusal(err error, failed string) *wrong {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, notice.ErrNotFound):
		return &wrong{"unknown_notification", "there is no such notification; it was acknowledged already, or its time is over"}
	case errors.Is(err, agent.ErrNoQuestion):
		return &wrong{"unknown_question", "no question waits for an answer under that id; it was answered already, or its time is over"}
	}
	s.log.Error(failed, "err", err)
	return &wrong{"internal", "internal error; the appliance's log says more"}
}

// write sends frames and pings until the connection ends.
func (s *skin) write() {
	defer s.conn.Drop()
	ticker := time.NewTicker(s.server.paces.ping)
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

// flush sends the frames that wait, and reports whether the connection lasts. It pings, because
// this may take long.
func (s *skin) flush(pings <-chan time.Time) bool {
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
			s.log.Info("a skin cannot keep up; it is disconnected")
			s.conn.Close(socket.TryLater, "you do not read fast enough; come back and take a snapshot")
			return false
		case f == nil:
			return true
		}
		if s.conn.SendText(f.Data) != nil {
			return false // read ends when the connection is dropped
		}
		s.view.Shown(f)
	}
}
