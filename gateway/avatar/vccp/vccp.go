// Package vccp is the Virtual Character Control Protocol 1.0: a model comes by
// MCP, a character by WebSocket, and what one plays the other performs. A robot
// of this appliance is a character too, and its own tools are offered to the same
// models. Coding agents that the appliance has started find the tools of their
// talk here too (Talks). docs/vccp.md lists what is as in the protocol's document, and what
// differs.
package vccp

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/perception"
	"perch/socket"
)

// robotTalk is the robots, as a model moves them.
type robotTalk interface {
	// Tools are those a robot lists, or listed when it was last here.
	Tools(id device.ID) []device.Tool
	// Call waits for what the tool answers, as long as ctx lives.
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
	Speak(ctx context.Context, id device.ID, text string) (queued bool, err error)
	Feel(ctx context.Context, id device.ID, e agent.Emotion) error
}

// registry holds the registered robots. Models are offered the robots that were
// adopted by name: any other may be anybody's, and models read its descriptions of
// its tools.
type registry interface {
	List() []device.Robot
	Trusts(id device.ID) bool
}

// senses know what robots sense.
type senses interface {
	Robot(id device.ID, now time.Time) perception.State
}

// skills are what the house's character knows how to do, as far as it is meant for
// other programs.
type skills interface {
	Exposed() []thinker.Tool
	CallExposed(ctx context.Context, name string, args json.RawMessage, now time.Time) (string, error)
}

// Options are what the door is made of. Only fields with a note may be
// empty.
type Options struct {
	Talk   robotTalk
	Robots registry
	Senses senses
	// Find is the robot that is meant by a MAC address or a name.
	Find      func(robot string) (device.ID, error)
	Bus       *event.Bus
	Face      func(preset string) (agent.Emotion, bool) // that a preset of an expression stands for
	UserTools func() bool                               // whether models may use the tools that are for a robot's owner; nil is no
	Skills    skills                                    // that models may have done; may be nil
	Idle      time.Duration                             // a session without a request ends after it; 0 is an hour
	Log       *slog.Logger
}

// What is held is bounded in number, and in time where no client comes any more.
const (
	mostSessions = 32
	leastIdle    = time.Minute // of a session that gives way to another
	mostCalls    = 16          // of robots' tools, at a time
	idleFor      = time.Hour
	quietFor     = 50 * time.Second
	mostMessages = 200 // of one character, in a second
)

// Server is the server. Close ends it.
type Server struct {
	o      Options
	server *mcp.Server
	http   *mcp.StreamableHTTPHandler
	calls  chan struct{} // a slot for each call under way
	quiet  time.Duration // how long a character may give no sign of life
	now    func() time.Time

	mu       sync.Mutex
	agents   map[string]*registered // by MCP session
	sockets  map[*client]bool       // open ones
	offered  map[string]offer       // robots' own tools, by the name they have here
	opening  int                    // sessions that are being opened
	used     map[string]*use        // by MCP session
	waiting  sync.WaitGroup         // for sessions to end, and sockets to close
	stopping bool
}

// New returns the door. Run has its tools follow those of the robots.
func New(o Options) *Server {
	o.Idle = cmp.Or(o.Idle, idleFor)
	if o.UserTools == nil {
		o.UserTools = func() bool { return false }
	}
	s := &Server{o: o, calls: make(chan struct{}, mostCalls), quiet: quietFor, now: time.Now, used: map[string]*use{},
		agents: map[string]*registered{}, sockets: map[*client]bool{}, offered: map[string]offer{}}
	// The library's own log has a line for every request.
	quiet := slog.New(slog.DiscardHandler)
	s.server = mcp.NewServer(&mcp.Implementation{Name: "vccp", Title: "Perch", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions: instructions, Logger: quiet, Capabilities: &mcp.ServerCapabilities{},
	})
	s.addTools()
	s.addSkills()
	s.http = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.server }, &mcp.StreamableHTTPOptions{
		SessionTimeout: o.Idle, MaxRequestBodyBytes: limit.List, Logger: quiet,
		// Host and Origin were checked before a request came here.
		DisableLocalhostProtection: true,
	})
	return s
}

// Run has the tools offered follow those of the robots, until ctx ends or the
// bus is closed.
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

// Close ends every session and every socket, and waits for them.
func (s *Server) Close() {
	s.mu.Lock()
	s.stopping = true
	for c := range s.sockets {
		c.conn.Close(socket.GoingAway, "the appliance is stopping")
	}
	s.mu.Unlock()
	for session := range s.server.Sessions() {
		_ = session.Close() // its end is all that is wanted
	}
	s.waiting.Wait()
}
