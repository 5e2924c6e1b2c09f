package hooks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// sent is the body of POST /state, in the shape of clawd-on-desk's hooks or,
// where it has a hook_event_name, as Claude Code sends it itself. What it holds
// besides is left alone.
type sent struct {
	State     string `json:"state"`
	SessionID string `json:"session_id"`
	Event     string `json:"event"`
	AgentID   string `json:"agent_id"` // of a subagent where Claude Code sends it
	ToolName  string `json:"tool_name"`
	ToolUseID string `json:"tool_use_id"`
	Headless  bool   `json:"headless"`
	SVG       string `json:"svg"`
	Display   string `json:"display_svg"`

	HookEvent string          `json:"hook_event_name"`
	ToolInput json.RawMessage `json:"tool_input"`
}

// report is what a coding session reported.
type report struct {
	agent, session string
	event          string
	state          coding
	call           call   // that it is about; without a name where it is about none
	sub            string // the subagent that reported it, where Claude Code names it
	headless       bool
	native         bool // of Claude Code itself, which reads the answer
}

func (r report) key() string { return key(r.agent, r.session) }

// claude is the agent for which these hooks were first made.
const claude = "claude-code"

// codex speaks the same dialect as Claude Code, and is named in the address.
const codex = "codex"

// parseReport reads a body. by is the agent that sent it, where the address names it.
func parseReport(by string, body []byte) (report, error) {
	var s sent
	if err := httpserver.Decode(body, &s); err != nil {
		return report{}, err
	}
	r := report{agent: cmp.Or(plain.Line(plain.Clip(by, limit.Word)), plain.Line(plain.Clip(s.AgentID, limit.Word)), claude), session: cmp.Or(plain.Line(plain.Clip(s.SessionID, limit.ID)), "default"),
		event: plain.Line(plain.Clip(cmp.Or(s.Event, s.HookEvent), limit.Word)), headless: s.Headless}
	if tool := plain.Line(plain.Clip(s.ToolName, limit.Word)); tool != "" {
		r.call = call{id: plain.Line(plain.Clip(s.ToolUseID, limit.ID)), name: tool, detail: detail(tool, s.ToolInput)}
	}
	if s.State == "" && s.HookEvent != "" {
		r.agent, r.sub, r.native = cmp.Or(plain.Line(plain.Clip(by, limit.Word)), claude), plain.Line(plain.Clip(s.AgentID, limit.ID)), true
		r.state = coded(s.HookEvent) // an event that stands for no state changes none
		return r, nil
	}
	r.state = coding(s.State)
	switch {
	case r.state.traits().priority >= 0:
	case strings.HasPrefix(s.State, "mini-") && s.SVG == "" && s.Display == "":
		return report{}, httpserver.BadBody("mini states need svg")
	case drawn(s.State):
		r.state = "" // a pose of a desktop figure, which does not exist here
	default:
		return report{}, httpserver.BadBody(fmt.Sprintf(
			"state is one of idle, thinking, working, juggling, sweeping, carrying, attention, notification, error and sleeping, not %q",
			plain.Clip(s.State, limit.Word)))
	}
	return r, nil
}

// drawn reports whether only a drawn figure has this state.
func drawn(state string) bool {
	switch state {
	case "yawning", "dozing", "collapsing", "waking", "mini-idle", "mini-alert", "mini-happy", "mini-enter", "mini-peek", "mini-crabwalk",
		"mini-enter-sleep", "mini-sleep":
		return true
	}
	return false
}

// report takes a coding session's report. It returns whether the answer has to
// be empty: Claude Code gives every text it is answered to its model.
func (d *API) report(by string, body []byte) (empty bool, err error) {
	r, err := parseReport(by, body)
	if err != nil || r.state == "" {
		return r.native, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, h := range d.held {
		h.beganBeside(r, now)
		if h.settledBy(r) {
			h.withdraw()
		}
	}
	d.change(d.table.sweep(now).fold(now, r))
	return r.native, nil
}
