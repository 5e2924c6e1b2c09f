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

// Talks lends tools to coding agents, with an MCP server for each session of theirs. Only a
// client with the session's bearer can connect, and tools work only during a turn.
type Talks struct {
	log *slog.Logger

	mu       sync.Mutex
	open     map[[sha256.Size]byte]*Talk // by the hash of their bearer
	waiting  sync.WaitGroup              // closing sessions
	stopping bool
}

// NewTalks returns an empty Talks.
func NewTalks(log *slog.Logger) *Talks {
	return &Talks{log: log, open: map[[sha256.Size]byte]*Talk{}}
}

// mostConnected bounds the MCP sessions of one talk.
const mostConnected = 8

// Talk is the MCP server of one session of a coding agent.
type Talk struct {
	talks  *Talks
	url    string
	bearer string
	server *mcp.Server
	http   *mcp.StreamableHTTPHandler
	calls  chan struct{} // holds an element for each running call

	mu      sync.Mutex
	turn    context.Context    // of the last turn
	cancel  func()             // cancels turn
	tools   *thinker.TurnTools // nil between two turns
	offered map[string]thinker.Tool
	running sync.WaitGroup // calls
}

const talkInstructions = `What you can do in the house while somebody talks with you: what the robot can do itself, timers, and what is remembered. Each works while you answer, and at no other time.`

// Open returns the talk of a new session. url is the address of Routes.
func (t *Talks) Open(url string) *Talk {
	one := &Talk{talks: t, url: url, bearer: rand.Text(), calls: make(chan struct{}, mostCalls), offered: map[string]thinker.Tool{}}
	one.server, one.http = newMCP("perch", talkInstructions, &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}, idleFor)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopping {
		t.open[sha256.Sum256([]byte(one.bearer))] = one
	}
	return one
}

// Close ends all talks, and waits for them.
func (t *Talks) Close() {
	t.mu.Lock()
	t.stopping = true
	for _, one := range t.open {
		one.void()
	}
	t.open = nil
	t.mu.Unlock()
	t.waiting.Wait()
}

// errNoTalk is the error for a client without a talk's bearer.
var errNoTalk error = &httpserver.Fault{Word: "no_talk", HTTP: http.StatusUnauthorized,
	Sentence: "this address is for coding agents that Perch has started, within a talk of theirs; models with the skins' key come to /mcp"}

// talkOf returns the talk of a request.
func (t *Talks) talkOf(r *http.Request) (*Talk, error) {
	scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.open[sha256.Sum256([]byte(bearer))]
	if one == nil || !strings.EqualFold(scheme, "Bearer") {
		return nil, errNoTalk
	}
	return one, nil
}

// serve answers a request of a coding agent.
func (t *Talks) serve(w http.ResponseWriter, r *http.Request) error {
	one, err := t.talkOf(r)
	if err != nil {
		return err
	}
	if r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" {
		connected := 0
		for range one.server.Sessions() {
			connected++
		}
		if connected >= mostConnected {
			return &httpserver.Fault{Word: "too_many_sessions", HTTP: http.StatusServiceUnavailable,
				Sentence: "too many sessions of one talk are open; end one of them"}
		}
	}
	in := timed{w, http.NewResponseController(w)}
	defer in.lift()
	one.http.ServeHTTP(in, r)
	return nil
}

// Address returns the address of the tools, and the bearer for it.
func (t *Talk) Address() (url, bearer string) { return t.url, t.bearer }

// StartTurn offers the tools of a turn until EndTurn, or until ctx ends.
func (t *Talk) StartTurn(ctx context.Context, tools *thinker.TurnTools) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn, t.cancel = context.WithCancel(ctx)
	t.tools = tools
	wanted := map[string]thinker.Tool{}
	for _, tool := range tools.Offered() {
		wanted[tool.Name] = tool
	}
	replaceTools(t.server, t.offered, wanted, func(_ string, tool thinker.Tool) *mcp.Tool { return describe(tool, t.talks.log) }, t.handler)
}

// describe returns a tool for the library, or nil if the library would not accept its schema.
func describe(tool thinker.Tool, log *slog.Logger) *mcp.Tool {
	schema := objectSchema(tool.Schema)
	if schema == nil {
		log.Warn("a tool is not lent: its arguments are described by no schema of an object", "tool", tool.Name)
		return nil
	}
	return &mcp.Tool{Name: tool.Name, Description: tool.Description, InputSchema: schema}
}

// objectSchema returns a schema that the library accepts, or nil for one at which it would panic:
// its type is object, its keys are compared exactly, and it has no x-mcp-header.
func objectSchema(schema json.RawMessage) json.RawMessage {
	var s map[string]any
	if json.Unmarshal(schema, &s) != nil || s["type"] != "object" {
		return nil
	}
	for key, want := range map[string]any{"properties": map[string]any{}, "required": []any{}} {
		if v, there := s[key]; there && reflect.TypeOf(v) != reflect.TypeOf(want) {
			return nil
		}
	}
	plain, err := json.Marshal(s)
	if err != nil || bytes.Contains(plain, []byte(`"x-mcp-header"`)) {
		return nil
	}
	return schema
}

// handler returns the handler of a tool.
func (t *Talk) handler(tool thinker.Tool) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		tools, turn := t.enter()
		if tools == nil {
			return answer("", errNoTurn), nil
		}
		defer t.running.Done()
		select {
		case t.calls <- struct{}{}:
			defer func() { <-t.calls }()
		default:
			return answer("", errBusy), nil
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(turn, cancel)()
		return answer(tools.Call(ctx, tool.Name, r.Params.Arguments)), nil
	}
}

// errNoTurn is the error for a call between two turns.
var errNoTurn = errors.New("nobody is being answered now, and nothing is done at other times")

// enter counts a call if there is a turn.
func (t *Talk) enter() (*thinker.TurnTools, context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tools == nil || t.turn.Err() != nil {
		return nil, nil
	}
	t.running.Add(1)
	return t.tools, t.turn
}

// EndTurn cancels the turn's calls, and waits for them.
func (t *Talk) EndTurn() {
	t.cancelTurn()
	t.running.Wait()
}

func (t *Talk) cancelTurn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
	}
	t.tools = nil
}

// Close ends the talk, and invalidates its bearer. It does not wait.
func (t *Talk) Close() {
	t.talks.mu.Lock()
	defer t.talks.mu.Unlock()
	key := sha256.Sum256([]byte(t.bearer))
	if t.talks.open[key] == t { // otherwise it is already closed
		delete(t.talks.open, key)
		t.void()
	}
}

// void closes the sessions. t.talks.mu must be held.
func (t *Talk) void() {
	t.cancelTurn()
	t.talks.waiting.Go(func() {
		for s := range t.server.Sessions() {
			_ = s.Close() // the error does not matter
		}
	})
}
