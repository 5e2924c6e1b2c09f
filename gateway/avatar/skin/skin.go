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
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/socket"
)

// skin is a connected skin. Two goroutines share it: one receives its commands,
// the other sends.
type skin struct {
	server *Server
	conn   *socket.Conn
	log    *slog.Logger
	view   *feed.Viewer

	address string
	since   time.Time

	ended chan struct{} // by the reader
}

// paces of a connection. They are shorter in tests.
type paces struct {
	ping  time.Duration // between two signs of life
	quiet time.Duration // without any, it is broken
	send  time.Duration // a frame may take
}

func usualPaces() paces {
	return paces{ping: 20 * time.Second, quiet: 50 * time.Second, send: 5 * time.Second}
}

// subprotocol is what a browser asks for beside the one that holds its key
// (httpserver.InUpgrade), and is answered with.
const subprotocol = "vtuber.v1"

// smallBuffer is enough for nearly every frame; a screen costs little that way.
const smallBuffer = 1024

// mostCommands are taken of one skin in a second.
const mostCommands = 50

// open upgrades a request and has the skin served until it leaves. It returns
// at once: the server's own memory of the request is then free.
func (s *Server) open(w http.ResponseWriter, r *http.Request) error {
	ctx, leave, err := s.serving.Enter(r)
	if err != nil {
		return err
	}
	conn, err := socket.Accept(w, r, socket.Options{
		MaxMessage: limit.Question, SendWithin: s.paces.send, Quiet: s.paces.quiet, Buffer: smallBuffer, PerSecond: mostCommands,
		Subprotocols: []string{subprotocol},
	})
	if err != nil {
		leave()
		return nil // Accept has answered
	}
	one := &skin{server: s, conn: conn, ended: make(chan struct{}),
		address: r.RemoteAddr, since: time.Now(), log: s.o.Log.With("address", r.RemoteAddr)}
	s.skins.add(one)
	one.view = s.o.Feed.Join(feed.Filter{Kinds: feed.RFCKinds(), Words: s.o.Vocabulary})
	s.o.Bus.Publish("", "", event.Changed{What: "connections"})
	go func() {
		defer leave()
		one.serve(ctx)
		s.o.Bus.Publish("", "", event.Changed{What: "connections"})
	}()
	return nil
}

// serve serves the skin until it leaves or ctx ends, and leaves nothing behind.
func (s *skin) serve(ctx context.Context) {
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { // one that does not read holds up no other
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

// read takes commands until the connection ends.
func (s *skin) read() {
	defer s.conn.Drop() // which ends a frame on its way
	defer close(s.ended)
	defer s.server.skins.remove(s)
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
			s.view.Answer(newErrorFrame(time.Now(), badCommand("a command is a text message, this one is binary")))
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
	switch c := c.(type) {
	case ping:
		s.view.Answer(newPongFrame(now))
	case subscribe:
		s.view.Subscribe(c.filter)
	case ack:
		bad = s.refusal(s.server.o.Notifier.Acknowledge(c.id), "a notification was not acknowledged")
	case reply:
		bad = s.refusal(s.server.o.Questions.Reply(c.id, c.allow), "a question was not answered") // the first answer counts
	}
	if bad != nil {
		s.view.Answer(newErrorFrame(now, bad))
	}
}

// refusal is what a skin is sent of an error. The log is told what failed where
// the fault is the appliance's.
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

// write sends what waits until the connection ends, and asks for signs of life
// meanwhile.
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

// flush sends all that waits, and reports whether the skin can have more. It
// may go on for long where the skin reads slowly.
func (s *skin) flush(signs <-chan time.Time) bool {
	for {
		select {
		case <-signs:
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
			return false // its reader ends too, once the connection is dropped
		}
		s.view.Shown(f)
	}
}
