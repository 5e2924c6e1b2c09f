// Package vccp serves the Virtual Character Control Protocol 1.0: a model connects by MCP, a
// character by WebSocket, and the character performs the model's actions. Robots are
// characters too, and their own tools are offered to the same models. Talks lends the tools
// of a turn to coding agents that the appliance has started. docs/vccp.md lists the
// differences to the protocol's document.
package vccp

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/event"
	"perch/perception"
	"perch/socket"
)

// robotTalk controls the robots.
type robotTalk interface {
	// Tools returns the tools that a robot has listed last.
	Tools(id device.ID) []device.Tool
	// Call calls a tool, and waits for its result until ctx ends.
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
	Speak(ctx context.Context, id device.ID, text string) (queued bool, err error)
	Feel(ctx context.Context, id device.ID, e agent.Emotion) error
}

// registry holds the registered robots. Only those adopted by name are offered to models, which
// read their descriptions of tools.
type registry interface {
	List() []device.Robot
	Trusts(id device.ID) bool
}

// senses holds the perceptions of robots.
type senses interface {
	Robot(id device.ID, now time.Time) perception.State
}

// skills are the skills of the household's character that other programs may use.
type skills interface {
	Exposed() []thinker.Tool
	CallExposed(ctx context.Context, name string, args json.RawMessage, now time.Time) (string, error)
}

// Options are the dependencies of a Server. Only fields whose comment says so may be empty.
type Options struct {
	Talk   robotTalk
	Robots registry
	Senses senses
	// Find returns the robot with a MAC address or a name.
	Find      func(robot string) (device.ID, error)
	Bus       *event.Bus
	Face      func(preset string) (agent.Emotion, bool) // of a preset of an expression
	UserTools func() bool                               // whether models may use the tools for a robot's owner; nil is no
	Skills    skills                                    // may be nil
	Idle      time.Duration                             // after which a session without requests ends; 0 is an hour
	Log       *slog.Logger
}

// Limits of the clients.
const (
	mostSessions = 32
	leastIdle    = time.Minute // before a session is closed for another
	mostCalls    = 16          // running at a time
	idleFor      = time.Hour
	quietFor     = 50 * time.Second
	mostMessages = 200 // of one character per second
)

// Server accepts models and characters.
type Server struct {
	o      Options
	server *mcp.Server
	http   *mcp.StreamableHTTPHandler
	calls  chan struct{} // holds an element for each running call
	quiet  time.Duration // without any message or pong, after which a character's connection is broken
	now    func() time.Time

	mu       sync.Mutex
	agents   map[string]*registered // by MCP session
	sockets  map[*client]bool
	offered  map[string]offer // robots' tools, by the name under which they are offered
	opening  int              // sessions that are being opened
	used     map[string]*use  // by MCP session
	waiting  sync.WaitGroup   // closing sessions and sockets
	stopping bool
}

// New returns a server, which Close ends. Run updates the offered tools.
func New(o Options) *Server {
	o.Idle = cmp.Or(o.Idle, idleFor)
	if o.UserTools == nil {
		o.UserTools = func() bool { return false }
	}
	s := &Server{o: o, calls: make(chan struct{}, mostCalls), quiet: quietFor, now: time.Now, used: map[string]*use{},
		agents: map[string]*registered{}, sockets: map[*client]bool{}, offered: map[string]offer{}}
	s.server, s.http = newMCP("vccp", instructions, &mcp.ServerCapabilities{}, o.Idle)
	s.addTools()
	s.addSkills()
	return s
}

// Run updates the offered tools until ctx ends or the bus is closed.
func (s *Server) Run(ctx context.Context) {
	reader := s.o.Bus.Read()
	s.updateTools()
	reader.Each(ctx, func(e event.Envelope) {
		switch what := e.Event.(type) {
		case event.ToolsListed, event.RobotSeen, event.RobotOnline, event.Missed:
			s.updateTools()
		case event.Changed:
			if what.What == "settings" { // UserTools is one of them
				s.updateTools()
			}
		}
	})
}

// Close closes every session and every socket, and waits for them.
func (s *Server) Close() {
	s.mu.Lock()
	s.stopping = true
	for c := range s.sockets {
		c.conn.Close(socket.GoingAway, "the appliance is stopping")
	}
	s.mu.Unlock()
	for session := range s.server.Sessions() {
		_ = session.Close() // the error does not matter
	}
	s.waiting.Wait()
}
