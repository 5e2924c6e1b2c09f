// Package openclaw speaks the OpenClaw gateway's WebSocket protocol, versions 3 and 4, so
// that programs made for that gateway show the agents of this appliance and talk with
// them: Flawed Avatar, and others that need no more than it does.
//
// A client is challenged, connects with a token, a signed device identity or neither, and
// is then sent what every session does as agent events; it lists sessions and agents, and
// sends texts that are answered by the rules of the skins' talks. Methods beyond these are
// answered with an error. Sources: docs/gateway/protocol.md and packages/gateway-protocol
// of openclaw/openclaw, and src/main/gateway-client.ts of RyuuTheChosen/flawed-openclaw.
package openclaw

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"perch/agent"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/socket"
)

// talks have a text answered.
type talks interface {
	// SessionOf is the session in which the talk of a name shows. The error has a Code.
	SessionOf(talk string) (session string, err error)
	// Chat has a text answered in a talk by a character, the household's where that is
	// empty, and passes on the replies. An error of take ends the turn.
	Chat(ctx context.Context, talk, character, text string, take func(agent.Reply) error) error
}

// characters are who may answer.
type characters interface {
	Names() []string
	Exists(name string) bool
}

// Options are what the door is made of. Only fields with a note may be nil or empty.
type Options struct {
	Feed       *feed.Feed
	Talks      talks
	Characters characters // nil is the household's alone

	// Token checks the token of a client at a remote "host:port". It is nil where none
	// is needed, as at a loopback address. The error has a Code.
	Token func(remote, token string) error

	Name    func() string // the household's agent's
	Version string        // of this program; empty is one that nobody has named
	Log     *slog.Logger
}

// Bounds of the clients.
const (
	mostClients = 64
	mostOfOne   = 32 // from one address
	perSecond   = 20 // messages of one client
	mostChats   = 4  // texts of one client that are being answered
)

// paces of a connection. They are shorter in tests.
type paces struct {
	handshake time.Duration // until a client has connected
	tick      time.Duration // between two signs of life
	send      time.Duration // a frame may take
	// late is how long the last answer to a call of agent waits for the end of its run. A
	// robot's run has another id, and a turn that shows nothing has none.
	late time.Duration
}

// usualPaces are the gateway's own, where it has them.
func usualPaces() paces {
	return paces{handshake: 15 * time.Second, tick: 15 * time.Second, send: 5 * time.Second, late: time.Second}
}

// Server lets clients in.
type Server struct {
	o       Options
	serving *httpserver.Serving
	paces   paces
	began   time.Time
	chats   chats
}

// New returns the door. Its feed has to run; Run disconnects the clients at the end.
func New(o Options) *Server {
	o.Version, o.Log = cmp.Or(o.Version, "dev"), httpserver.Seldom(o.Log)
	return &Server{o: o, serving: httpserver.NewServing("clients", mostClients, mostOfOne), paces: usualPaces(), began: time.Now(), chats: newChats()}
}

// Run lets clients in until ctx ends. Then every connection is closed with 1001, and Run
// returns when all are gone.
func (s *Server) Run(ctx context.Context) { s.serving.Run(ctx) }

// Connected is how many clients there are.
func (s *Server) Connected() int { return s.serving.Connected() }

// open upgrades a request and has the client served until it leaves. It returns at once.
func (s *Server) open(w http.ResponseWriter, r *http.Request) error {
	ctx, leave, err := s.serving.Enter(r)
	if err != nil {
		return err
	}
	conn, err := socket.Accept(w, r, socket.Options{MaxMessage: limit.Body, SendWithin: s.paces.send, Quiet: 3*s.paces.tick + s.paces.send,
		PerSecond: perSecond})
	if err != nil {
		leave()
		return nil // Accept has answered
	}
	c := newConnection(s, conn, r.RemoteAddr)
	go func() {
		defer leave()
		c.serve(ctx)
	}()
	return nil
}
