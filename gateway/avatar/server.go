// Package avatar is what the doors of avatar programs have in common. A program opens a
// WebSocket, puts questions to the agent in a talk that has a name, and is shown what
// belongs to that talk. How a program is spoken to is its protocol's, which is a package
// of its own.
//
// Of one connection, one goroutine receives, one sends and one answers: a question
// interrupts the answer before it. What waits for a program that does not read is
// bounded, because whoever has something to send waits for the one that sends.
package avatar

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"perch/agent"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/socket"
)

// Limits of the connected programs of one kind.
const (
	mostPrograms = 32
	mostOfOne    = 8 // from one address
)

// Chat is the door that answers text: gateway/avatar/skin.
type Chat interface {
	// SessionOf is the session in which the talk of a name shows.
	SessionOf(talk string) (session string, err error)
	// Chat has a text answered in a talk, and passes on the replies.
	Chat(ctx context.Context, talk, character, text string, take func(agent.Reply) error) error
}

// Program is how one connected program is spoken to.
type Program interface {
	// Greet sends the first messages. It is called once, before Take.
	Greet(ctx context.Context) error
	// Handle deals with a message, on the goroutine that receives. An error ends the
	// connection.
	Handle(ctx context.Context, message []byte) error
	// MessageFor is the message that tells of a frame; nil is none. It is called on the
	// goroutine that sends, and must not send itself.
	MessageFor(f *feed.Frame) any
}

// Options are what a door is made of.
type Options struct {
	Kind        string // of its programs, and of the talk where a program names none
	Feed        *feed.Feed
	Chat        Chat
	Shown       []string // the kinds of frames that its programs are told
	MostMessage int      // bytes
	PerSecond   int      // messages
	Log         *slog.Logger

	New func(c *Conn) Program // makes what speaks with one program
}

// Server lets programs of one kind in.
type Server struct {
	o       Options
	serving *httpserver.Serving
	paces   paces
}

// paces of a connection. They are shorter in tests.
type paces struct {
	ping  time.Duration // between two signs of life
	quiet time.Duration // without any, it is broken
	send  time.Duration // a message may take
}

// New returns a door. Its feed has to run; Run disconnects the programs at the end.
func New(o Options) *Server {
	return &Server{o: o, serving: httpserver.NewServing("programs", mostPrograms, mostOfOne),
		paces: paces{ping: 20 * time.Second, quiet: 50 * time.Second, send: 10 * time.Second}}
}

// Run lets programs in until ctx ends. Then every connection is closed with 1001, and Run
// returns when all are gone.
func (s *Server) Run(ctx context.Context) { s.serving.Run(ctx) }

// subprotocol is what a page asks for beside the one that holds its key (httpserver.InUpgrade),
// and is answered with.
const subprotocol = "vtuber.v1"

// Open upgrades a request and has the program served until it leaves. The address may
// name the talk that it joins (?talk=, "robot:" and a robot's name is that robot's) and
// the character that answers (?character=). It returns at once.
func (s *Server) Open(w http.ResponseWriter, r *http.Request) error {
	asked := r.URL.Query()
	talk := asked.Get("talk")
	if talk == "" {
		talk = s.o.Kind
	}
	session, err := s.o.Chat.SessionOf(talk)
	if err != nil {
		return err
	}
	ctx, leave, err := s.serving.Enter(r)
	if err != nil {
		return err
	}
	conn, err := socket.Accept(w, r, socket.Options{MaxMessage: s.o.MostMessage, SendWithin: s.paces.send, Quiet: s.paces.quiet,
		PerSecond: s.o.PerSecond, Subprotocols: []string{subprotocol}})
	if err != nil {
		leave()
		return nil // Accept has answered
	}
	c := &Conn{server: s, socket: conn, talk: talk, session: session, character: asked.Get("character"),
		out: make(chan []byte), greeted: make(chan struct{}),
		log:  s.o.Log.With("address", r.RemoteAddr),
		view: s.o.Feed.Join(feed.Filter{Kinds: s.o.Shown, Sessions: shown(talk, session), All: true})}
	c.program = s.o.New(c)
	go func() {
		defer leave()
		c.serve(ctx)
	}()
	return nil
}

// shown are the sessions that a program is shown: that of its talk. One that has joined a
// robot's talk is shown the robot's own as well, where people speak with it.
func shown(talk, session string) []string {
	if !strings.HasPrefix(talk, feed.OfRobot) {
		return []string{session}
	}
	return []string{session, feed.OfRobot + strings.TrimPrefix(session, agent.OfChat)}
}
