package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"perch/agent"
	"perch/agent/acp"
	"perch/agent/thinker"
	"perch/device"
	"perch/must"
)

// neck is a robot that can turn its head.
type neck struct {
	mu     sync.Mutex
	turned []string
}

func (*neck) Tools() []device.Tool {
	return []device.Tool{{Name: "self.robot.turn", Schema: device.Schema{Type: "object",
		Properties: map[string]device.Argument{"yaw": {Type: "integer"}}}}}
}

func (n *neck) Call(_ context.Context, name string, args map[string]any) (device.Result, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.turned = append(n.turned, fmt.Sprint(name, args["yaw"]))
	return device.Result{Text: "turned"}, nil
}

func (*neck) Reboot(context.Context) error { return nil }

// fakeEndpoints opens endpoints and records the calls of their methods.
type fakeEndpoints struct {
	mu    sync.Mutex
	notes []string
	all   []*endpoint
}

func (p *fakeEndpoints) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// log returns the recorded calls and deletes them.
func (p *fakeEndpoints) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	log := strings.Join(p.notes, ", ")
	p.notes = nil
	return log
}

func (p *fakeEndpoints) open() acp.ToolEndpoint {
	p.mu.Lock()
	one := &endpoint{fakeEndpoints: p, n: len(p.all) + 1}
	p.all = append(p.all, one)
	p.mu.Unlock()
	p.note("open %d", one.n)
	return one
}

type endpoint struct {
	*fakeEndpoints
	n     int
	tools *thinker.TurnTools
}

func (p *endpoint) Address() (url, bearer string) {
	return fmt.Sprintf("http://127.0.0.1:1/%d", p.n), fmt.Sprint("bearer-", p.n)
}

func (p *endpoint) StartTurn(_ context.Context, tools *thinker.TurnTools) {
	var names []string
	for _, t := range tools.Offered() {
		names = append(names, t.Name)
	}
	p.tools = tools
	p.note("begin %d with %s", p.n, strings.Join(names, " "))
}
func (p *endpoint) EndTurn() { p.note("end %d", p.n) }
func (p *endpoint) Close()   { p.note("close %d", p.n) }

// lending returns a rig whose agent gets the tools of a thinker.Brain, and its endpoints.
func lending(t *testing.T, mode string) (*rig, *fakeEndpoints) {
	p := &fakeEndpoints{}
	return build(t, mode, func(o *acp.Options) {
		o.Tools, o.Lend = thinker.New(thinker.Options{}).TurnTools, p.open
	}), p
}

// think runs a turn of a robot with a neck.
func (r *rig) think(words string, h *received) (*neck, error) {
	n := &neck{}
	turn := r.turnOf("a", words)
	turn.Body = n
	return n, r.brain.Think(r.t.Context(), turn, h.take)
}

// TestAnAgentIsLentTools tests that each session has an endpoint, which is opened before the
// session and closed with it, and that the tools are available only during turns.
func TestAnAgentIsLentTools(t *testing.T) {
	r, p := lending(t, "tools")
	if _, err := r.think("say Hi.", &received{}); err != nil {
		t.Fatal(err)
	}
	if got := p.log(); got != "open 1, begin 1 with end_talk self_robot_turn, end 1" {
		t.Errorf("the first turn: %s", got)
	}
	want := `"mcpServers":[{"headers":[{"name":"Authorization","value":"Bearer bearer-1"}],"name":"perch","type":"http","url":"http://127.0.0.1:1/1"}]`
	if !strings.Contains(r.received(), want) {
		t.Errorf("the agent was sent\n%s, want\n%s", r.received(), want)
	}
	// A turn without the robot has other tools.
	r.want("where", "😐|Session s1 turn 2 blocks 1.|.done")
	if got := p.log(); got != "begin 1 with , end 1" {
		t.Errorf("the second turn: %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := r.brain.Think(ctx, r.turnOf("a", "say Hm.;wait"), func(agent.Reply) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) || p.log() != "begin 1 with , end 1" {
		t.Errorf("a turn that was interrupted: %v", err)
	}
	r.brain.Forget("a")
	if got := p.log(); got != "close 1" {
		t.Errorf("forgotten: %s", got)
	}
	if err := r.brain.Think(t.Context(), agent.Turn{Robot: robot, Untrusted: true, Text: "say Hi."}, (&received{}).take); !errors.Is(err,
		agent.ErrStranger) {
		t.Error(err)
	}
	if got := p.log(); got != "" {
		t.Errorf("for a stranger: %s", got)
	}
	must.Succeed(t, r.brain.Check(t.Context()))
	if _, err := r.think("say Hi.", &received{}); err != nil || p.log() != "open 2, begin 2 with end_talk self_robot_turn, end 2" {
		t.Errorf("what Check opened has no tools, and is used: %v", err)
	}
	_, _ = r.think("die", &received{})
	if got := p.log(); got != "begin 2 with end_talk self_robot_turn, end 2, close 2" &&
		got != "begin 2 with end_talk self_robot_turn, close 2, end 2" {
		t.Errorf("its agent died: %s", got)
	}
}

// TestAnAgentThatTakesNoTools tests that an agent that does not support MCP over HTTP gets no
// tools, and that this is logged.
func TestAnAgentThatTakesNoTools(t *testing.T) {
	r, p := lending(t, "plain")
	if _, err := r.think("say Hi.", &received{}); err != nil || p.log() != "" || !strings.Contains(r.received(), `"mcpServers":[]`) {
		t.Errorf("%v, %s", err, r.received())
	}
	if n := strings.Count(r.log.String(), "MCP over HTTP"); n != 1 {
		t.Errorf("the log says so %d times: %s", n, r.log)
	}
}

// TestALentToolNeedsNoPermission tests that the tools of the endpoint need no permission of a
// person, but that tools with similar names, and tools not offered in this turn, need one.
func TestALentToolNeedsNoPermission(t *testing.T) {
	r, _ := lending(t, "tools")
	const asks = "?"
	for name, asked := range map[string]bool{"mcp__perch__self_robot_turn": false, "mcp__perch__end_talk": false,
		"mcp__perch__set_timer": true, "mcp__other__self_robot_turn": true, "self_robot_turn": true, "Bash": true} {
		h := &received{}
		if _, err := r.think("named t1 "+name+";ask t1 -", h); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(h.String(), asks); got != asked {
			t.Errorf("%s: %s", name, h)
		}
		if !asked && !strings.Contains(h.String(), "optionId once") {
			t.Errorf("%s is not allowed: %s", name, h)
		}
	}
	// A title does not identify a tool, because the model may have written it.
	h := &received{}
	if _, err := r.think("ask t9 execute mcp__perch__self_robot_turn", h); err != nil || !strings.Contains(h.String(), asks) {
		t.Errorf("a title: %v %s", err, h)
	}
}

// TestALentToolActs tests that a tool of the endpoint controls the turn's robot and the end of
// the turn, and that after a tool has run the turn's error does not wrap agent.ErrAway.
func TestALentToolActs(t *testing.T) {
	r, p := lending(t, "tools")
	use := func(name, args string) func(agent.Reply) error {
		return func(reply agent.Reply) error {
			if _, is := reply.(agent.Say); is {
				text, err := p.all[0].tools.Call(t.Context(), name, json.RawMessage(args))
				p.note("%s %v", text, err)
			}
			return nil
		}
	}
	h := &received{on: use("self_robot_turn", `{"yaw":30}`)}
	n, err := r.think("say Look.", h)
	if got := p.log(); err != nil || fmt.Sprint(n.turned) != "[self.robot.turn30]" || !strings.Contains(got, "turned <nil>") {
		t.Errorf("%v, %v, %s", err, n.turned, got)
	}
	h = &received{on: use("end_talk", `{}`)}
	if _, err := r.think("say Bye.", h); err != nil || h.String() != "😐|Bye.|."+string(agent.HangUp) {
		t.Errorf("%v, %s", err, h)
	}
	h = &received{on: use("self_robot_turn", `{}`)}
	if _, err := r.think("say Hm.;tool c1 read completed Look;fail -32603 broken", h); err == nil || errors.Is(err, agent.ErrAway) {
		t.Errorf("it failed after it had acted, and another brain is tried: %v", err)
	}
	h = &received{on: use("launch", `{}`)}
	if _, err := r.think("say Hm.", h); err != nil || !strings.Contains(p.log(), "no such tool") {
		t.Errorf("a tool that is not lent: %v", err)
	}
}
