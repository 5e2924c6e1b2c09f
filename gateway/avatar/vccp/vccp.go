// Package vccp serves the Virtual Character Control Protocol (VCCP) 1.0: a language model connects
// by MCP, a character connects by WebSocket, and the character performs the model's actions. A robot
// can be the character too, and a model can also call the robots' own tools. ToolEndpoints offers the
// tools of a turn to coding agents that the appliance has started. docs/vccp.md lists the differences
// from the specification of the protocol.
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

// robotControl controls the robots.
type robotControl interface {
	// Tools returns the robot's latest list of tools.
	Tools(id device.ID) []device.Tool
	// Call calls a tool, and waits for the result until ctx ends. It limits angles and colours to the
	// ranges of the tool's arguments.
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
	// Speak makes a robot speak. queued is true if the robot is not connected and will speak later.
	Speak(ctx context.Context, id device.ID, text string) (queued bool, err error)
	// ShowEmotion makes a robot show a face.
	ShowEmotion(ctx context.Context, id device.ID, e agent.Emotion) error
}

// registry holds the registered robots. Models can use only adopted robots: models read the
// descriptions of a robot's tools, and a robot that nobody has adopted could write a prompt there.
type registry interface {
	List() []device.Robot
	// Trusts reports whether a robot is adopted.
	Trusts(id device.ID) bool
}

// senses holds the perceptions of robots.
type senses interface {
	Robot(id device.ID, now time.Time) perception.State
}

// skills are the skills of the default character that other programs may call.
type skills interface {
	Exposed() []thinker.Tool
	CallExposed(ctx context.Context, name string, args json.RawMessage, now time.Time) (string, error)
}

// Options are the dependencies of a Server. Only fields whose comment says so may be empty.
type Options struct {
	Control robotControl
	Robots  registry
	Senses  senses
	// Find returns the robot with a MAC address or a name.
	Find      func(robot string) (device.ID, error)
	Bus       *event.Bus
	Face      func(preset string) (agent.Emotion, bool) // returns the face for a preset, the name in an action of the category expression
	UserTools func() bool                               // whether models may use tools that are for a robot's owner; nil means no
	Skills    skills                                    // may be nil
	Idle      time.Duration                             // a session ends after this time without a request; 0 means an hour
	Log       *slog.Logger
}

// Limits for models and characters.
const (
	maxSessions = 32               // MCP sessions
	minIdle     = time.Minute      // idle time after which a session may be closed to make room for another
	maxCalls    = 16               // tool calls in progress
	defaultIdle = time.Hour        // default of Options.Idle
	quietFor    = 50 * time.Second // value of Server.quiet outside tests
	maxMessages = 200              // messages per second from one character
)

// Server accepts models and characters.
type Server struct {
	o      Options
	server *mcp.Server
	http   *mcp.StreamableHTTPHandler
	calls  chan struct{} // semaphore of maxCalls
	quiet  time.Duration // a character's connection is dropped after this time without a message or pong
	now    func() time.Time

	mu       sync.Mutex
	agents   map[string]*registeredAgent // key: MCP session ID
	sockets  map[*client]bool            // connected characters
	offered  map[string]robotTool        // key: name under which the tool is offered
	opening  int                         // number of sessions that are being opened
	used     map[string]*sessionUse      // key: MCP session ID
	closing  sync.WaitGroup              // counts registered sessions, open sockets, and sessions and sockets that are being closed
	stopping bool                        // set by Close
}

// New returns a server. Run updates the offered tools. The caller must call Close.
func New(o Options) *Server {
	o.Idle = cmp.Or(o.Idle, defaultIdle)
	if o.UserTools == nil {
		o.UserTools = func() bool { return false }
	}
	s := &Server{o: o, calls: make(chan struct{}, maxCalls), quiet: quietFor, now: time.Now, used: map[string]*sessionUse{},
		agents: map[string]*registeredAgent{}, sockets: map[*client]bool{}, offered: map[string]robotTool{}}
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
		switch ev := e.Event.(type) {
		case event.ToolsListed, event.RobotSeen, event.RobotOnline, event.Missed:
			s.updateTools()
		case event.Changed:
			if ev.What == "settings" { // UserTools may return another value
				s.updateTools()
			}
		}
	})
}

// Close closes all sessions and sockets, and waits until they have ended.
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
	s.closing.Wait()
}
