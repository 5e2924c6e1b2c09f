// Package avatar is the common part of the servers for avatar programs. An avatar program draws a
// character that speaks the agent's replies. It connects by WebSocket, joins a named conversation with
// the agent, and receives the replies, tool calls and notifications of that conversation. The packages
// aituber and llmvtuber implement the protocols of two such programs. The packages skin and openclaw
// use the function Accept.
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
	maxPrograms   = 32               // in total
	maxPerAddress = 8                // from one peer (see httpserver.PeerOf)
	pingEvery     = 20 * time.Second // time between pings
	quietFor      = 50 * time.Second // a connection is dropped after this time without a message or pong
	sendWithin    = 10 * time.Second // maximum time for sending one message
)

// Chat sends text to the agent. *skin.Server implements it.
type Chat interface {
	// SessionOf returns the session ID that the events of the named conversation carry. The
	// error, if any, has a Code method.
	SessionOf(conversation string) (session string, err error)
	// Chat sends text to a character in the named conversation, and passes each part of the
	// reply to handle. If character is empty, the default character replies. In a robot's
	// conversation, the robot's own character always replies. If handle returns an error, the
	// turn ends.
	Chat(ctx context.Context, conversation, character, text string, handle func(agent.Reply) error) error
}

// Program implements the protocol of avatar programs of one kind, for one connected program.
type Program interface {
	// Greet sends the first messages. It is called once, before Handle.
	Greet(ctx context.Context) error
	// Handle handles a received message. It is called on the goroutine that receives. An
	// error ends the connection.
	Handle(ctx context.Context, message []byte) error
	// MessageFor returns the message that shows a frame, whose body is a feed.Tool or a
	// feed.Notice. It returns nil to skip the frame. It is called on the goroutine that sends,
	// and must not call Conn.Send.
	MessageFor(f *feed.Frame) any
}

// Options are the dependencies and settings of a Server.
type Options struct {
	Kind      string // kind of program; also the conversation of a program that does not name one
	Path      string // path of the WebSocket
	Feed      *feed.Feed
	Chat      Chat
	PerSecond int // maximum number of messages per second from one program
	Log       *slog.Logger

	New func(c *Conn) Program // returns the Program for a new connection
}

// Server accepts programs of one kind.
type Server struct {
	o       Options
	serving *httpserver.Serving
}

// New returns a server. The caller runs o.Feed and the server.
func New(o Options) *Server {
	return &Server{o: o, serving: httpserver.NewServing("programs", maxPrograms, maxPerAddress)}
}

// Run accepts programs until ctx ends. It then closes every connection with status 1001
// (going away), and returns once all connections have ended.
func (s *Server) Run(ctx context.Context) { s.serving.Run(ctx) }

// Routes mounts the WebSocket. The caller must add a handler to r that checks the program's key, because
// Routes does not.
func (s *Server) Routes(r gin.IRouter) {
	r.GET(s.o.Path, func(c *gin.Context) {
		if err := s.open(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	})
}

// Subprotocol is the WebSocket subprotocol that the response selects. A web page requests it
// together with a second subprotocol, which contains the page's key (httpserver.InUpgrade).
const Subprotocol = "vtuber.v1"

// open upgrades a request and serves the program on other goroutines. The query may contain the
// name of the conversation to join (?talk=) and the character that replies (?character=). The name of
// a robot's conversation is "robot:" followed by the robot's ID or name.
func (s *Server) open(w http.ResponseWriter, r *http.Request) error {
	query, remote := r.URL.Query(), r.RemoteAddr
	conversation := cmp.Or(query.Get("talk"), s.o.Kind)
	session, err := s.o.Chat.SessionOf(conversation)
	if err != nil {
		return err
	}
	return Accept(s.serving, w, r, socket.Options{MaxMessage: limit.Message, SendWithin: sendWithin, Quiet: quietFor,
		PerSecond: s.o.PerSecond, Subprotocols: []string{Subprotocol}}, func(ctx context.Context, conn *socket.Conn) {
		c := &Conn{server: s, socket: conn, name: conversation, session: session, character: query.Get("character"),
			out: make(chan []byte), greeted: make(chan struct{}), log: s.o.Log.With("address", remote),
			view: s.o.Feed.Join(feed.Filter{Kinds: []string{feed.KindTool, feed.KindNotice}, Sessions: sessionsOf(conversation, session), AllStates: true})}
		c.program = s.o.New(c)
		c.serve(ctx)
	})
}

// Accept counts a connection against the limits of s, upgrades its request, and calls serve on
// another goroutine, so that the HTTP server can free the request. If Accept returns an error, the
// caller must send it as the response.
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

// sessionsOf returns the feed.Filter.Sessions of a program: the session of its conversation and, if
// it has joined the conversation of a robot, all sessions of the robot.
func sessionsOf(conversation, session string) []string {
	if !strings.HasPrefix(conversation, feed.RobotPrefix) {
		return []string{session}
	}
	return []string{session, feed.RobotPrefix + strings.TrimPrefix(session, agent.ChatPrefix)}
}
