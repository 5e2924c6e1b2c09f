// Package avatar is the common part of the servers for avatar programs. A program connects by
// WebSocket, joins a named conversation with the agent, and receives the tools and
// notifications of that conversation. Each protocol is a package below this one.
//
// Each connection has three goroutines: one receives, one sends, and one produces the
// current reply. A new question interrupts the current reply. A program that does not read
// blocks only its own goroutines, and the number of frames queued for it is bounded.
package avatar

import (
	"cmp"
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
	maxPrograms   = 32
	maxPerAddress = 8
)

// Chat sends text to the agent. *skin.Server implements it.
type Chat interface {
	// SessionOf returns the session ID in the events of the named conversation. Its error
	// has a Code method.
	SessionOf(conversation string) (session string, err error)
	// Chat sends text to a character in the named conversation, and passes each reply to
	// handle. An empty character is the household's. An error of handle ends the turn.
	Chat(ctx context.Context, conversation, character, text string, handle func(agent.Reply) error) error
}

// Program speaks the protocol of one connected program.
type Program interface {
	// Greet sends the first messages. It is called once, before Handle.
	Greet(ctx context.Context) error
	// Handle handles a received message. It is called on the goroutine that receives. An
	// error ends the connection.
	Handle(ctx context.Context, message []byte) error
	// MessageFor returns the message that shows a frame, which is a feed.Tool or a
	// feed.Notice, or nil to skip the frame. It is called on the goroutine that sends, and
	// must not call Conn.Send.
	MessageFor(f *feed.Frame) any
}

// Options are the dependencies of a Server.
type Options struct {
	Kind      string // kind of program; also the conversation of a program that names none
	Path      string // path of the WebSocket
	Feed      *feed.Feed
	Chat      Chat
	PerSecond int // maximum of messages per second from one program
	Log       *slog.Logger

	New func(c *Conn) Program // returns the protocol's side of a new connection
}

// Server accepts programs of one kind.
type Server struct {
	o       Options
	serving *httpserver.Serving
	paces   paces
}

// paces are the intervals of a connection; tests shorten them.
type paces struct {
	ping  time.Duration // interval between pings
	quiet time.Duration // the connection is dropped after this time without a message or pong
	send  time.Duration // maximum time for sending one message
}

// New returns a server. o.Feed must be running.
func New(o Options) *Server {
	return &Server{o: o, serving: httpserver.NewServing("programs", maxPrograms, maxPerAddress),
		paces: paces{ping: 20 * time.Second, quiet: 50 * time.Second, send: 10 * time.Second}}
}

// Run accepts programs until ctx ends. It then closes every connection with status 1001
// (going away), and returns once all connections have ended.
func (s *Server) Run(ctx context.Context) { s.serving.Run(ctx) }

// Routes mounts the WebSocket. The caller must check keys in a handler before it.
func (s *Server) Routes(r gin.IRouter) {
	r.GET(s.o.Path, func(c *gin.Context) {
		if err := s.open(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	})
}

// Subprotocol is the WebSocket subprotocol that the response selects. Web pages request it
// together with a second subprotocol that contains their key (httpserver.InUpgrade).
const Subprotocol = "vtuber.v1"

// open upgrades a request and serves the program on other goroutines. The query may contain
// the conversation to join (?talk=, where "robot:" and a robot's name join that robot's
// conversation) and the character that replies (?character=).
func (s *Server) open(w http.ResponseWriter, r *http.Request) error {
	query, remote := r.URL.Query(), r.RemoteAddr
	conversation := cmp.Or(query.Get("talk"), s.o.Kind)
	session, err := s.o.Chat.SessionOf(conversation)
	if err != nil {
		return err
	}
	return Accept(s.serving, w, r, socket.Options{MaxMessage: limit.Message, SendWithin: s.paces.send, Quiet: s.paces.quiet,
		PerSecond: s.o.PerSecond, Subprotocols: []string{Subprotocol}}, func(ctx context.Context, conn *socket.Conn) {
		c := &Conn{server: s, socket: conn, name: conversation, session: session, character: query.Get("character"),
			out: make(chan []byte), greeted: make(chan struct{}), log: s.o.Log.With("address", remote),
			view: s.o.Feed.Join(feed.Filter{Kinds: []string{feed.KindTool, feed.KindNotice}, Sessions: sessionsOf(conversation, session), AllStates: true})}
		c.program = s.o.New(c)
		c.serve(ctx)
	})
}

// Accept counts a connection against the limits of s, upgrades its request, and calls serve on
// another goroutine, which allows the server to free the request. The caller must send a returned
// error as the response.
func Accept(s *httpserver.Serving, w http.ResponseWriter, r *http.Request, o socket.Options,
	serve func(context.Context, *socket.Conn)) error {
	ctx, leave, err := s.Enter(r)
	if err != nil {
		return err
	}
	conn, err := socket.Accept(w, r, o)
	if err != nil {
		leave()
		return nil // socket.Accept has sent the response
	}
	go func() {
		defer leave()
		serve(ctx, conn)
	}()
	return nil
}

// sessionsOf returns the sessions whose frames a program receives: its conversation's and,
// if the conversation is a robot's, the robot's own.
func sessionsOf(conversation, session string) []string {
	if !strings.HasPrefix(conversation, feed.OfRobot) {
		return []string{session}
	}
	return []string{session, feed.OfRobot + strings.TrimPrefix(session, agent.ChatPrefix)}
}
