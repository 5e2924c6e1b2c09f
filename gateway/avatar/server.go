// Package avatar is the common part of the servers for avatar programs. A program connects by
// WebSocket, puts questions to the agent in a named talk, and is shown that talk. Each
// protocol is a package below this one.
//
// For each connection one goroutine receives, one sends and one answers: a question
// interrupts the previous answer. A program that does not read blocks only its own
// goroutines, so what waits for it is bounded.
package avatar

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"perch/agent"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/socket"
)

// Limits of the connected programs of one kind.
const (
	mostPrograms = 32
	mostOfOne    = 8 // from one address
)

// Chat answers text; gateway/avatar/skin implements it.
type Chat interface {
	// SessionOf returns the session under which a talk is published. The error has a Code.
	SessionOf(talk string) (session string, err error)
	// Chat has a character answer a text in a talk, and passes the replies to take. An
	// empty character stands for the household's. An error of take ends the turn.
	Chat(ctx context.Context, talk, character, text string, take func(agent.Reply) error) error
}

// Program speaks the protocol of one connected program.
type Program interface {
	// Greet sends the first messages. It is called once, before Handle.
	Greet(ctx context.Context) error
	// Handle handles a message, on the goroutine that receives. An error ends the
	// connection.
	Handle(ctx context.Context, message []byte) error
	// MessageFor returns the message for a frame of a tool or a notification, or nil for
	// none. It is called on the goroutine that sends, and must not send.
	MessageFor(f *feed.Frame) any
}

// Options are the dependencies of a Server.
type Options struct {
	Kind      string // of the programs; also the talk of a program that names none
	Path      string // of the WebSocket
	Feed      *feed.Feed
	Chat      Chat
	PerSecond int // messages received per second from one program
	Log       *slog.Logger

	New func(c *Conn) Program
}

// Server accepts programs of one kind.
type Server struct {
	o       Options
	serving *httpserver.Serving
	paces   paces
}

// paces are the intervals of a connection; tests shorten them.
type paces struct {
	ping  time.Duration // between two pings
	quiet time.Duration // without any message or pong, after which the connection is broken
	send  time.Duration // the most that one message may take
}

// New returns a server. o.Feed must be running. Run disconnects the programs at the end.
func New(o Options) *Server {
	return &Server{o: o, serving: httpserver.NewServing("programs", mostPrograms, mostOfOne),
		paces: paces{ping: 20 * time.Second, quiet: 50 * time.Second, send: 10 * time.Second}}
}

// Run accepts programs until ctx ends. It then closes every connection with 1001, and
// returns when all have ended.
func (s *Server) Run(ctx context.Context) { s.serving.Run(ctx) }

// Routes mounts the WebSocket. The caller checks keys before it.
func (s *Server) Routes(r gin.IRouter) {
	r.GET(s.o.Path, func(c *gin.Context) {
		if err := s.open(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	})
}

// Subprotocol is requested by pages together with the subprotocol that contains their key
// (httpserver.InUpgrade); the answer names it.
const Subprotocol = "vtuber.v1"

// open upgrades a request and serves the program on other goroutines. The query may name
// the talk to join (?talk=, where "robot:" and a name stand for that robot's talk) and the
// character that answers (?character=).
func (s *Server) open(w http.ResponseWriter, r *http.Request) error {
	query, remote := r.URL.Query(), r.RemoteAddr
	talk := query.Get("talk")
	if talk == "" {
		talk = s.o.Kind
	}
	session, err := s.o.Chat.SessionOf(talk)
	if err != nil {
		return err
	}
	return Accept(s.serving, w, r, socket.Options{MaxMessage: limit.Message, SendWithin: s.paces.send, Quiet: s.paces.quiet,
		PerSecond: s.o.PerSecond, Subprotocols: []string{Subprotocol}}, func(ctx context.Context, conn *socket.Conn) {
		c := &Conn{server: s, socket: conn, talk: talk, session: session, character: query.Get("character"),
			out: make(chan []byte), greeted: make(chan struct{}), log: s.o.Log.With("address", remote),
			view: s.o.Feed.Join(feed.Filter{Kinds: []string{feed.KindTool, feed.KindNotice}, Sessions: sessionsOf(talk, session), AllStates: true})}
		c.program = s.o.New(c)
		c.serve(ctx)
	})
}

// Accept counts a connection, upgrades its request, and calls serve on another goroutine, so that
// the request's memory is released. An error has to be rendered by the caller.
func Accept(s *httpserver.Serving, w http.ResponseWriter, r *http.Request, o socket.Options,
	serve func(context.Context, *socket.Conn)) error {
	ctx, leave, err := s.Enter(r)
	if err != nil {
		return err
	}
	conn, err := socket.Accept(w, r, o)
	if err != nil {
		leave()
		return nil // Accept has answered
	}
	go func() {
		defer leave()
		serve(ctx, conn)
	}()
	return nil
}

// sessionsOf returns the sessions that a program is shown: its talk's, and for a robot's talk
// also the robot's own sessions.
func sessionsOf(talk, session string) []string {
	if !strings.HasPrefix(talk, feed.OfRobot) {
		return []string{session}
	}
	return []string{session, feed.OfRobot + strings.TrimPrefix(session, agent.OfChat)}
}
