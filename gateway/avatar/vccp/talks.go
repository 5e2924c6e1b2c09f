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
	"perch/limit"
)

// Talks are the tools that are lent to coding agents, a server for each session
// of theirs. Only a client with the session's bearer is let in; within a
// turn its tools work, and at no other time.
type Talks struct {
	log *slog.Logger

	mu       sync.Mutex
	open     map[[sha256.Size]byte]*Talk // by its bearer
	waiting  sync.WaitGroup              // for sessions to end
	stopping bool
}

// NewTalks returns none.
func NewTalks(log *slog.Logger) *Talks {
	return &Talks{log: log, open: map[[sha256.Size]byte]*Talk{}}
}

// mostConnected bounds the MCP sessions of one talk.
const mostConnected = 8

// Talk is one of them.
type Talk struct {
	talks  *Talks
	url    string
	bearer string
	server *mcp.Server
	http   *mcp.StreamableHTTPHandler
	calls  chan struct{} // a slot for each call under way

	mu      sync.Mutex
	turn    context.Context    // that is under way; nil between two
	cancel  func()             // of the calls in it
	tools   *thinker.TurnTools // what it may use
	offered map[string]thinker.Tool
	running sync.WaitGroup // calls
}

const talkInstructions = `What you can do in the house while somebody talks with you: what the robot can do itself, timers, and what is remembered. Each works while you answer, and at no other time.`

// Open returns the address of a session that is about to begin. url is where
// Routes are.
func (t *Talks) Open(url string) *Talk {
	one := &Talk{talks: t, url: url, bearer: rand.Text(), calls: make(chan struct{}, mostCalls), offered: map[string]thinker.Tool{}}
	quiet := slog.New(slog.DiscardHandler)
	one.server = mcp.NewServer(&mcp.Implementation{Name: "perch", Title: "Perch", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions: talkInstructions, Logger: quiet, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
	})
	one.http = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one.server }, &mcp.StreamableHTTPOptions{
		SessionTimeout: idleFor, MaxRequestBodyBytes: limit.List, Logger: quiet, DisableLocalhostProtection: true,
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopping {
		t.open[sha256.Sum256([]byte(one.bearer))] = one
	}
	return one
}

// Close ends all, and waits for them.
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

// errNoTalk is the answer to a client without a talk's bearer.
var errNoTalk error = &httpserver.Fault{Word: "no_talk", HTTP: http.StatusUnauthorized,
	Sentence: "this address is for coding agents that Perch has started, within a talk of theirs; models with the skins' key come to /mcp"}

// talkOf is the talk of a request.
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

// serve answers a request of a talk's agent.
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

// Address is where the talk's agent finds its tools, and what it shows there.
func (t *Talk) Address() (url, bearer string) { return t.url, t.bearer }

// StartTurn has the tools of a turn be there until End, or until ctx ends.
func (t *Talk) StartTurn(ctx context.Context, tools *thinker.TurnTools) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn, t.cancel = context.WithCancel(ctx)
	t.tools = tools
	wanted := map[string]thinker.Tool{}
	for _, tool := range tools.Offered() {
		wanted[tool.Name] = tool
	}
	var gone []string
	for name := range t.offered {
		if _, still := wanted[name]; !still {
			gone = append(gone, name)
			delete(t.offered, name)
		}
	}
	t.server.RemoveTools(gone...)
	for name, tool := range wanted {
		if reflect.DeepEqual(t.offered[name], tool) {
			continue
		}
		schema := objectSchema(tool.Schema)
		if schema == nil {
			t.talks.log.Warn("a tool is not lent: its arguments are described by no schema of an object", "tool", name)
			continue
		}
		t.offered[name] = tool
		t.server.AddTool(&mcp.Tool{Name: name, Description: tool.Description, InputSchema: schema}, t.runs(name))
	}
}

// objectSchema is a schema as the library takes it, which panics at others; nil
// is one of those. Names of keys are as they are written, to the library, and
// x-mcp-header may stand at few of them.
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

// runs is the handler of a tool.
func (t *Talk) runs(name string) mcp.ToolHandler {
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
		return answer(tools.Call(ctx, name, r.Params.Arguments)), nil
	}
}

// errNoTurn is the answer to a call between two turns.
var errNoTurn = errors.New("nobody is being answered now, and nothing is done at other times")

// enter counts a call in, where a turn is under way.
func (t *Talk) enter() (*thinker.TurnTools, context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tools == nil || t.turn.Err() != nil {
		return nil, nil
	}
	t.running.Add(1)
	return t.tools, t.turn
}

// EndTurn voids the tools of the turn, and returns when none is at work any more.
func (t *Talk) EndTurn() {
	t.rest()
	t.running.Wait()
}

func (t *Talk) rest() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
	}
	t.tools = nil
}

// Close ends the talk: its bearer opens nothing any more. It waits for nothing.
func (t *Talk) Close() {
	t.talks.mu.Lock()
	defer t.talks.mu.Unlock()
	key := sha256.Sum256([]byte(t.bearer))
	if t.talks.open[key] == t { // else it was closed with all
		delete(t.talks.open, key)
		t.void()
	}
}

// void ends the sessions. Its caller holds the lock of the talks.
func (t *Talk) void() {
	t.rest()
	t.talks.waiting.Go(func() {
		for s := range t.server.Sessions() {
			_ = s.Close() // its end is all that is wanted
		}
	})
}
