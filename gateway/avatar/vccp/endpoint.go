package vccp

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"perch/agent/thinker"
	"perch/gateway/httpserver"
)

// ToolEndpoints offers tools to coding agents. Each session of a coding agent has an endpoint,
// which is an MCP server for clients with the session's bearer token. Its tools can be called
// only during a turn.
type ToolEndpoints struct {
	log *slog.Logger

	mu       sync.Mutex
	open     map[[sha256.Size]byte]*ToolEndpoint // key: hash of the bearer token
	closing  sync.WaitGroup                      // counts endpoints whose MCP sessions are being closed
	stopping bool                                // set by Close
}

// NewToolEndpoints returns a ToolEndpoints without endpoints.
func NewToolEndpoints(log *slog.Logger) *ToolEndpoints {
	return &ToolEndpoints{log: log, open: map[[sha256.Size]byte]*ToolEndpoint{}}
}

// maxConnected is the maximum number of MCP sessions of one endpoint.
const maxConnected = 8

// ToolEndpoint is the MCP server of one session of a coding agent.
type ToolEndpoint struct {
	endpoints *ToolEndpoints
	url       string
	bearer    string
	server    *mcp.Server
	http      *mcp.StreamableHTTPHandler
	calls     chan struct{} // semaphore of maxCalls

	mu      sync.Mutex
	turn    context.Context         // context of the latest turn
	cancel  func()                  // cancels turn; nil before the first turn
	tools   *thinker.TurnTools      // nil between turns
	offered map[string]thinker.Tool // key: tool name
	running sync.WaitGroup          // counts calls
}

// endpointInstructions tell a coding agent what the tools do.
const endpointInstructions = `What you can do in the house while somebody talks with you: use the robot's own abilities, set timers, and remember facts. The tools work only while you answer.`

// Open returns the endpoint of a new session. url is the address of the endpoint that Routes mounts. The
// endpoint refuses all clients if e.Close was called before.
func (e *ToolEndpoints) Open(url string) *ToolEndpoint {
	t := &ToolEndpoint{endpoints: e, url: url, bearer: rand.Text(), calls: make(chan struct{}, maxCalls), offered: map[string]thinker.Tool{}}
	t.server, t.http = newMCP("perch", endpointInstructions, &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}, defaultIdle)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stopping {
		e.open[sha256.Sum256([]byte(t.bearer))] = t
	}
	return t
}

// Close closes all endpoints, and waits until their MCP sessions have ended.
func (e *ToolEndpoints) Close() {
	e.mu.Lock()
	e.stopping = true
	for _, t := range e.open {
		t.closeSessions()
	}
	e.open = nil
	e.mu.Unlock()
	e.closing.Wait()
}

// errNoEndpoint is the error for a client without the bearer token of an open endpoint.
var errNoEndpoint error = &httpserver.Fault{Word: "no_talk", HTTP: http.StatusUnauthorized,
	Sentence: "this address is for coding agents that Perch has started, and needs the token of one of their sessions; models with the skins' key use /mcp"}

// endpointFor returns the endpoint for the bearer token of a request.
func (e *ToolEndpoints) endpointFor(r *http.Request) (*ToolEndpoint, error) {
	scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.open[sha256.Sum256([]byte(bearer))]
	if t == nil || !strings.EqualFold(scheme, "Bearer") {
		return nil, errNoEndpoint
	}
	return t, nil
}

// serve serves a request of a coding agent.
func (e *ToolEndpoints) serve(w http.ResponseWriter, r *http.Request) error {
	t, err := e.endpointFor(r)
	if err != nil {
		return err
	}
	if r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" {
		connected := 0
		for range t.server.Sessions() {
			connected++
		}
		if connected >= maxConnected {
			return &httpserver.Fault{Word: "too_many_sessions", HTTP: http.StatusServiceUnavailable,
				Sentence: "too many MCP sessions are open for one coding agent; end one of them"}
		}
	}
	serveTimed(t.http, w, r)
	return nil
}

// Address returns the URL of the endpoint and its bearer token.
func (t *ToolEndpoint) Address() (url, bearer string) { return t.url, t.bearer }

// StartTurn offers the tools of a turn. They can be called until EndTurn is called or ctx ends, and stay listed
// until the next turn.
func (t *ToolEndpoint) StartTurn(ctx context.Context, tools *thinker.TurnTools) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn, t.cancel = context.WithCancel(ctx)
	t.tools = tools
	wanted := map[string]thinker.Tool{}
	for _, tool := range tools.Offered() {
		wanted[tool.Name] = tool
	}
	replaceTools(t.server, t.offered, wanted, func(_ string, tool thinker.Tool) *mcp.Tool { return mcpTool(tool, t.endpoints.log) }, t.newHandler)
}

// mcpTool converts a tool for the MCP library. It returns nil, and logs a warning, if the library
// would not accept the tool's schema.
func mcpTool(tool thinker.Tool, log *slog.Logger) *mcp.Tool {
	if !isObjectSchema(tool.Schema) {
		log.Warn("a tool is not offered because the schema of its arguments does not describe an object", "tool", tool.Name)
		return nil
	}
	return &mcp.Tool{Name: tool.Name, Description: tool.Description, InputSchema: tool.Schema}
}

// isObjectSchema reports whether the MCP library accepts a schema. The library panics at a schema if
// type is not object, if properties or required have the wrong JSON type, or if x-mcp-header occurs.
func isObjectSchema(schema json.RawMessage) bool {
	var s map[string]any // not a struct, because encoding/json would ignore the case of its keys
	if json.Unmarshal(schema, &s) != nil || s["type"] != "object" {
		return false
	}
	for key, want := range map[string]any{"properties": map[string]any{}, "required": []any{}} {
		if v, ok := s[key]; ok && reflect.TypeOf(v) != reflect.TypeOf(want) {
			return false
		}
	}
	encoded, err := json.Marshal(s)
	return err == nil && !bytes.Contains(encoded, []byte(`"x-mcp-header"`))
}

// newHandler returns the handler of a tool.
func (t *ToolEndpoint) newHandler(tool thinker.Tool) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		tools, turn := t.startCall()
		if tools == nil {
			return newResult("", errNoTurn), nil
		}
		defer t.running.Done()
		select {
		case t.calls <- struct{}{}:
			defer func() { <-t.calls }()
		default:
			return newResult("", errBusy), nil
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(turn, cancel)()
		return newResult(tools.Call(ctx, tool.Name, r.Params.Arguments)), nil
	}
}

// errNoTurn is the error for a tool call when no turn is in progress.
var errNoTurn = errors.New("nobody is being answered now; tools can be called only during an answer")

// startCall returns the tools and the context of the current turn, and adds a call to t.running.
// It returns nil if no turn is in progress.
func (t *ToolEndpoint) startCall() (*thinker.TurnTools, context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tools == nil || t.turn.Err() != nil {
		return nil, nil
	}
	t.running.Add(1)
	return t.tools, t.turn
}

// EndTurn cancels the turn's calls, and waits until they have ended.
func (t *ToolEndpoint) EndTurn() {
	t.cancelTurn()
	t.running.Wait()
}

// cancelTurn cancels the turn's calls, without waiting for them.
func (t *ToolEndpoint) cancelTurn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
	}
	t.tools = nil
}

// Close closes the endpoint and invalidates its bearer token. It does not wait for the MCP sessions
// to end.
func (t *ToolEndpoint) Close() {
	t.endpoints.mu.Lock()
	defer t.endpoints.mu.Unlock()
	key := sha256.Sum256([]byte(t.bearer))
	if t.endpoints.open[key] == t { // otherwise the endpoint is already closed
		delete(t.endpoints.open, key)
		t.closeSessions()
	}
}

// closeSessions cancels the turn, and closes the MCP sessions on another goroutine.
// t.endpoints.mu must be held.
func (t *ToolEndpoint) closeSessions() {
	t.cancelTurn()
	t.endpoints.closing.Go(func() {
		for s := range t.server.Sessions() {
			_ = s.Close() // the error does not matter
		}
	})
}
