package vccp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/gateway/httpserver"
	"perch/must"
	"perch/waittest"
)

// neck is a robot with one tool.
type neck struct {
	mu     sync.Mutex
	turned []string
	hold   chan struct{} // if not nil, a call sends to it and waits for the end of its context
}

func (*neck) Tools() []device.Tool {
	return []device.Tool{
		{Name: "self.robot.turn", Description: "Turn.", Schema: device.Schema{Properties: map[string]device.Argument{"yaw": {Type: "integer"}}}},
	}
}

func (n *neck) Call(ctx context.Context, name string, args map[string]any) (device.Result, error) {
	if n.hold != nil {
		n.hold <- struct{}{}
		<-ctx.Done()
		return device.Result{}, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.turned = append(n.turned, fmt.Sprint(name, args["yaw"]))
	return device.Result{Text: "turned"}, nil
}

func (*neck) Reboot(context.Context) error { return nil }

// lent holds a running server of ToolEndpoints.
type lent struct {
	talks   *ToolEndpoints
	thinker *thinker.Brain
	server  *httptest.Server
	log     *bytes.Buffer
}

func newLent(t *testing.T, sources ...thinker.ToolSource) *lent {
	t.Helper()
	l := &lent{log: &bytes.Buffer{}, thinker: thinker.New(thinker.Options{Sources: sources})}
	log := slog.New(slog.NewTextHandler(l.log, nil))
	l.talks = NewToolEndpoints(log)
	e, err := httpserver.NewEngine(log)
	must.Succeed(t, err)
	l.talks.Routes(e)
	l.server = httptest.NewServer(e)
	t.Cleanup(func() { l.talks.Close(); l.server.Close() })
	return l
}

func (m *model) names() (names []string) {
	m.t.Helper()
	for tool, err := range m.Tools(m.t.Context(), nil) {
		must.Succeed(m.t, err)
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// TestLentTools tests that the tools of a turn are available only to the coding agent of the session, only during the turn,
// and only for the turn's robot.
func TestLentTools(t *testing.T) {
	l := newLent(t)
	url := l.server.URL + "/mcp/talk"
	talk, other := l.talks.Open(url), l.talks.Open(url)
	address, bearer := talk.Address()
	if _, second := other.Address(); second == bearer || len(bearer) < 20 || address != url {
		t.Errorf("%s %s", address, bearer)
	}
	for _, wrong := range []string{"", "wrong", bearer + "x", strings.ToLower(bearer)} {
		if _, err := connect(t, url, wrong); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
			t.Errorf("%q is let in: %v", wrong, err)
		}
	}
	first, second := &neck{}, &neck{}
	talk.StartTurn(t.Context(), l.thinker.TurnTools(t.Context(), agent.Turn{Robot: robotA, Body: first}, nil))
	other.StartTurn(t.Context(), l.thinker.TurnTools(t.Context(), agent.Turn{Robot: robotB, Body: second}, nil))
	m, err := connect(t, url, bearer)
	must.Succeed(t, err)
	if got := m.names(); !slices.Equal(got, []string{"end_talk", "self_robot_turn"}) {
		t.Errorf("lent are %v", got)
	}
	if text, failed := m.call("self_robot_turn", object{"yaw": 30}); failed || text != "turned" {
		t.Errorf("%t %s", failed, text)
	}
	if fmt.Sprint(first.turned, second.turned) != "[self.robot.turn30] []" {
		t.Errorf("%v, and of the other talk %v", first.turned, second.turned)
	}
	if text, failed := m.call("end_talk", object{"asleep": "perhaps"}); !failed || strings.Contains(text, "Go ") ||
		!strings.Contains(text, "asleep may not be a JSON string") {
		t.Errorf("%t %s", failed, text)
	}
	talk.EndTurn()
	if text, failed := m.call("self_robot_turn", object{"yaw": 40}); !failed || text != errNoTurn.Error() {
		t.Errorf("between two turns: %t %s", failed, text)
	}
	// The next turn has no robot, and the coding agent is notified of the change.
	talk.StartTurn(t.Context(), l.thinker.TurnTools(t.Context(), agent.Turn{}, nil))
	<-m.changed
	if got := m.names(); len(got) != 0 {
		t.Errorf("without its robot are lent %v", got)
	}
	talk.EndTurn()
	ctx, cancel := context.WithCancel(t.Context())
	talk.StartTurn(ctx, l.thinker.TurnTools(t.Context(), agent.Turn{Body: first}, nil))
	cancel()
	if text, failed := m.call("self_robot_turn", object{"yaw": 50}); !failed {
		t.Errorf("in a turn that was interrupted: %s", text)
	}
	talk.Close()
	talk.Close()
	talk.EndTurn()
	if _, err := connect(t, url, bearer); err == nil {
		t.Error("after its end a talk lets in")
	}
	if _, err := m.CallTool(t.Context(), &mcp.CallToolParams{Name: "end_talk"}); err == nil {
		t.Error("after its end a tool is called")
	}
	if len(first.turned) != 1 {
		t.Errorf("turned %v", first.turned)
	}
}

// TestEndTurnWaits tests that EndTurn waits for running calls.
func TestEndTurnWaits(t *testing.T) {
	l := newLent(t)
	talk := l.talks.Open(l.server.URL + "/mcp/talk")
	n := &neck{hold: make(chan struct{})}
	talk.StartTurn(t.Context(), l.thinker.TurnTools(t.Context(), agent.Turn{Body: n}, nil))
	m, err := connect(t, l.server.URL+"/mcp/talk", talk.bearer)
	must.Succeed(t, err)
	answered := make(chan bool, 1)
	go func() {
		_, failed := m.call("self_robot_turn", object{})
		answered <- failed
	}()
	<-n.hold
	talk.EndTurn()
	if !<-answered {
		t.Error("it did not fail")
	}
}

// odd is a source of tools, most of which have invalid schemas.
type odd struct{}

func (odd) Tools(context.Context) []thinker.Tool {
	return []thinker.Tool{{Name: "a", Schema: []byte(`{"type":"string"}`)}, {Name: "b", Schema: []byte(`[]`)},
		{Name: "c", Schema: []byte(`{"type":"object","properties":7}`)},
		{Name: "d", Schema: []byte(`{"type":"object"}`)}, {Name: "e", Schema: []byte(`{"Type":"object"}`)},
		{Name: "f", Schema: []byte(`{"type":"object","properties":{"x":{"type":"number","x-mcp-head\u0065r":"X"}}}`)}}
}
func (odd) Call(context.Context, string, json.RawMessage) (string, error) {
	return "", errors.New("never")
}

// TestOddSchemas tests that an invalid schema disables only its own tool.
func TestOddSchemas(t *testing.T) {
	l := newLent(t, odd{})
	talk := l.talks.Open(l.server.URL + "/mcp/talk")
	talk.StartTurn(t.Context(), l.thinker.TurnTools(t.Context(), agent.Turn{}, nil))
	m, err := connect(t, l.server.URL+"/mcp/talk", talk.bearer)
	must.Succeed(t, err)
	if got := m.names(); !slices.Equal(got, []string{"d", "e"}) || strings.Count(l.log.String(), "is not offered because") != 4 {
		t.Errorf("lent are %v: %s", got, l.log)
	}
}

// TestTalksAreBounded tests that the number of MCP sessions of an endpoint is bounded, and that Close ends them.
func TestTalksAreBounded(t *testing.T) {
	l := newLent(t)
	url := l.server.URL + "/mcp/talk"
	talk := l.talks.Open(url)
	talk.StartTurn(t.Context(), l.thinker.TurnTools(t.Context(), agent.Turn{Body: &neck{}}, nil))
	connected := 0
	for ; connected <= maxConnected; connected++ {
		if _, err := connect(t, url, talk.bearer); err != nil {
			break
		}
	}
	if connected < 2 || connected > maxConnected {
		t.Errorf("%d are let in", connected)
	}
	l.talks.Close()
	if _, err := connect(t, url, talk.bearer); err == nil {
		t.Error("after the end somebody is let in")
	}
	late := l.talks.Open(url)
	if _, err := connect(t, url, late.bearer); err == nil {
		t.Error("a talk begins after the end")
	}
	waittest.For(t, "no session is left", func() bool {
		for range talk.server.Sessions() {
			return false
		}
		return true
	})
}
