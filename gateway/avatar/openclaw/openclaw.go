// Package openclaw serves the OpenClaw gateway's WebSocket protocol, versions 3 and 4, so
// that programs for that gateway, such as Flawed Avatar, show the appliance's agents and
// chat with them.
//
// The server challenges a client, which connects with a token, a signed device identity or
// neither. It then sends the activity of every session as agent events, lists sessions and
// agents, and answers texts by the rules of the skins' talks. Other methods are answered
// with an error. Sources: docs/gateway/protocol.md and packages/gateway-protocol of
// openclaw/openclaw, and src/main/gateway-client.ts of RyuuTheChosen/flawed-openclaw.
package openclaw

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"perch/gateway/avatar"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/health"
	"perch/limit"
	"perch/socket"
)

// characters are the agents besides the household's.
type characters interface {
	Names() []string
	Exists(name string) bool
}

// Options are the dependencies of a Server. Only fields whose comment says so may be nil or
// empty.
type Options struct {
	Feed       *feed.Feed
	Talks      avatar.Chat
	Characters characters // may be nil

	// Token checks the token of a client at a remote "host:port". It is nil if clients need
	// none, as at a loopback address. The error has a Code.
	Token func(remote, token string) error

	Name    func() string // of the household's agent
	Version string        // of Perch; may be empty
	Log     *slog.Logger
}

// Limits of the clients.
const (
	mostClients = 64
	mostOfOne   = 32 // from one address
	perSecond   = 20 // messages of one client
	mostChats   = 4  // texts of one client being answered
)

// paces are the intervals of a connection; tests shorten them.
type paces struct {
	handshake time.Duration // the most until a client has connected
	tick      time.Duration // between two ticks
	send      time.Duration // the most that a frame may take
	// late is how long the final answer to a call of agent waits for the end of its run: a
	// robot's run has another id, and a turn that shows nothing has no run.
	late time.Duration
}

// usualPaces returns the gateway's own intervals, as far as it has them.
func usualPaces() paces {
	return paces{handshake: 15 * time.Second, tick: 15 * time.Second, send: 5 * time.Second, late: time.Second}
}

// Server accepts clients.
type Server struct {
	o       Options
	serving *httpserver.Serving
	paces   paces
	began   time.Time
	chats   chats
}

// New returns a server. o.Feed must be running. Run disconnects the clients at the end.
func New(o Options) *Server {
	o.Version, o.Log = cmp.Or(o.Version, "dev"), httpserver.LimitLogger(o.Log)
	return &Server{o: o, serving: httpserver.NewServing("clients", mostClients, mostOfOne), paces: usualPaces(), began: time.Now(), chats: newChats()}
}

// Run accepts clients until ctx ends. It then closes every connection with 1001, and returns
// when all have ended.
func (s *Server) Run(ctx context.Context) { s.serving.Run(ctx) }

// Connected returns the number of clients.
func (s *Server) Connected() int { return s.serving.Connected() }

// Condition returns the server's health part: its addresses and the number of clients.
func (s *Server) Condition(addresses []string) health.Part {
	return health.Part{Name: "openclaw", OK: true}.Saying(
		fmt.Sprintf("serves %s; %d programs are connected", strings.Join(addresses, ", "), s.Connected()))
}

// Routes mounts the WebSocket at the root of its listener, where clients expect the gateway.
func (s *Server) Routes(r gin.IRouter) {
	r.GET("/", func(c *gin.Context) {
		if err := s.open(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	})
}

// open upgrades a request and serves the client on other goroutines.
func (s *Server) open(w http.ResponseWriter, r *http.Request) error {
	remote := r.RemoteAddr
	return avatar.Accept(s.serving, w, r, socket.Options{MaxMessage: limit.Body, SendWithin: s.paces.send,
		Quiet: 3*s.paces.tick + s.paces.send, PerSecond: perSecond}, func(ctx context.Context, conn *socket.Conn) { newConnection(s, conn, remote).serve(ctx) })
}
