// Package openclaw serves the WebSocket protocol, versions 3 and 4, of the gateway of OpenClaw, an
// AI assistant. Programs for that gateway, such as Flawed Avatar, can show the appliance's agents
// and chat with them.
//
// The server sends a new client a challenge, and the client responds with a connect request, which
// contains a token if Options.Token requires one. The server then sends the activity of all sessions as
// agent events, lists sessions and agents, and passes texts to an avatar.Chat. For some other methods
// it has fixed answers, and the rest of the protocol is not supported. Sources:
// docs/gateway/protocol.md and packages/gateway-protocol of openclaw/openclaw, and
// src/main/gateway-client.ts of RyuuTheChosen/flawed-openclaw.
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

// characters are the characters that the owner has defined. Clients see each of them as an agent, in
// addition to the agent main, which is the default character.
type characters interface {
	Names() []string
	Exists(name string) bool
}

// Options are the dependencies of a Server. Only fields whose comment says so may be nil or
// empty.
type Options struct {
	Feed       *feed.Feed
	Chat       avatar.Chat
	Characters characters // may be nil

	// Token checks the token of a client, whose address is remote (host:port). The error has a
	// Code method. Token is nil if clients need no token, as at a loopback address.
	Token func(remote, token string) error

	Name    func() string // returns the name of the default character
	Version string        // version of Perch; may be empty
	Log     *slog.Logger
}

// Limits of the clients.
const (
	maxClients    = 64
	maxPerAddress = 32
	maxPerSecond  = 20 // messages from one client
	maxTexts      = 4  // texts from one client that are being answered
)

// timings are the intervals and timeouts of a connection; tests shorten them.
type timings struct {
	handshake time.Duration // maximum time until a client has sent its connect request
	tick      time.Duration // interval between tick events, and between pings
	send      time.Duration // maximum time for sending a frame
	// finalDelay is the maximum time that the final response to an agent request waits
	// for the end of the run to be sent to the client. Some texts have no such run: a turn of a
	// robot has a run with another ID, and a turn without visible activity has no run.
	finalDelay time.Duration
}

// defaultTimings returns the timings outside tests. They are the same as in OpenClaw's gateway, except
// for timings that the gateway does not have.
func defaultTimings() timings {
	return timings{handshake: 15 * time.Second, tick: 15 * time.Second, send: 5 * time.Second, finalDelay: time.Second}
}

// Server accepts clients.
type Server struct {
	o       Options
	serving *httpserver.Serving
	timings timings
	started time.Time
	texts   texts
}

// New returns a server. The caller runs o.Feed and the server.
func New(o Options) *Server {
	o.Version, o.Log = cmp.Or(o.Version, "dev"), httpserver.LimitLogger(o.Log)
	return &Server{o: o, serving: httpserver.NewServing("clients", maxClients, maxPerAddress), timings: defaultTimings(), started: time.Now(), texts: newTexts()}
}

// Run accepts clients until ctx ends. It then closes every connection with status 1001 (going
// away), and returns once all connections have ended.
func (s *Server) Run(ctx context.Context) { s.serving.Run(ctx) }

// Connected returns the number of connected clients.
func (s *Server) Connected() int { return s.serving.Connected() }

// Condition returns the health of the server, which listens at addresses.
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
	return avatar.Accept(s.serving, w, r, socket.Options{MaxMessage: limit.Body, SendWithin: s.timings.send,
		Quiet: 3*s.timings.tick + s.timings.send, PerSecond: maxPerSecond}, func(ctx context.Context, conn *socket.Conn) { newConnection(s, conn, remote).serve(ctx) })
}
