package hooks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// stateReport is the body of POST /state. A body with a hook_event_name and without a state is in the format of Claude
// Code, and any other body in the format of clawd-on-desk's hooks. Fields that are not listed here are ignored.
type stateReport struct {
	State     string `json:"state"`
	SessionID string `json:"session_id"`
	Event     string `json:"event"`
	AgentID   string `json:"agent_id"` // ID of a subagent in the format of Claude Code, and otherwise the name of the agent
	ToolName  string `json:"tool_name"`
	ToolUseID string `json:"tool_use_id"`
	Headless  bool   `json:"headless"`
	SVG       string `json:"svg"`
	Display   string `json:"display_svg"`

	HookEvent string          `json:"hook_event_name"`
	ToolInput json.RawMessage `json:"tool_input"`

	// Fields of the event Stop.
	StopHookActive  bool                      `json:"stop_hook_active"` // whether a hook has made the agent continue
	BackgroundTasks []struct{ Status string } `json:"background_tasks"`
	LastMessage     string                    `json:"last_assistant_message"`
}

// stopState returns the event and the state that the event Stop of Claude Code means. If only a subagent has
// stopped, state is "". If the agent has not failed and its background tasks still run, event is "".
func (s stateReport) stopState() (event string, state codingState) {
	running := slices.ContainsFunc(s.BackgroundTasks, func(task struct{ Status string }) bool {
		return !slices.Contains([]string{"completed", "failed", "killed", "stopped", "cancelled", "done"}, task.Status)
	})
	switch {
	case s.AgentID != "":
		return stop, ""
	case strings.HasPrefix(s.LastMessage, "API Error"):
		return stopFailure, failed
	case running:
		return "", working
	}
	if s.StopHookActive { // an earlier Stop has already set the state attention
		return stop, idle
	}
	return stop, attention
}

// report is a report of a coding session.
type report struct {
	agent, session string
	event          string // name of the event; may be empty
	state          codingState
	call           call   // the call that the report is about; zero if the report names no tool
	sub            string // ID of the subagent that reported, or ""
	headless       bool   // whether nobody watches the session
	native         bool   // whether the format is Claude Code's
}

// key returns the key of the session in a table.
func (r report) key() string { return key(r.agent, r.session) }

// Names of the agents that wait for the answer to a permission. Codex uses the format of Claude
// Code, and its hooks have its name in the URL's query.
const (
	claude = "claude-code"
	codex  = "codex"
)

// line returns text on one line, cut to maxBytes.
func line(text string, maxBytes int) string { return plain.Line(plain.Clip(text, maxBytes)) }

// parseReport decodes a report. The state is "" if the report changes no state. by is the name of the agent in the
// URL's query, or "".
func parseReport(by string, body []byte) (report, error) {
	var s stateReport
	if err := httpserver.Decode(body, &s); err != nil {
		return report{}, err
	}
	r := report{agent: cmp.Or(line(by, limit.Word), line(s.AgentID, limit.Word), claude), session: cmp.Or(line(s.SessionID, limit.ID), "default"),
		event: line(cmp.Or(s.Event, s.HookEvent), limit.Word), headless: s.Headless}
	if tool := line(s.ToolName, limit.Word); tool != "" {
		r.call = call{id: line(s.ToolUseID, limit.ID), name: tool, detail: detail(tool, s.ToolInput)}
	}
	if s.State == "" && s.HookEvent != "" {
		r.agent, r.sub, r.native = cmp.Or(line(by, limit.Word), claude), line(s.AgentID, limit.ID), true
		if r.state = stateOf(s.HookEvent); r.event == stop {
			r.event, r.state = s.stopState()
		}
		return r, nil
	}
	r.state = codingState(s.State)
	switch {
	case r.state.traits().priority >= 0:
	case strings.HasPrefix(s.State, "mini-") && s.SVG == "" && s.Display == "":
		return report{}, httpserver.BadBody("a state that begins with mini- needs svg or display_svg")
	case slices.Contains(figureStates(), s.State):
		r.state = ""
	default:
		return report{}, httpserver.BadBody(fmt.Sprintf(
			"state must be one of idle, thinking, working, juggling, sweeping, carrying, attention, notification, error and sleeping, not %q",
			plain.Clip(s.State, limit.Word)))
	}
	return r, nil
}

// figureStates returns the states that only the figure of clawd-on-desk shows. Valid reports of these states are
// ignored.
func figureStates() []string {
	return []string{"yawning", "dozing", "collapsing", "waking", "mini-idle", "mini-alert", "mini-happy", "mini-enter", "mini-peek",
		"mini-crabwalk", "mini-enter-sleep", "mini-sleep"}
}

// report handles a report. empty says whether the response must be empty, because Claude Code passes the text of
// a response to its model.
func (a *API) report(by string, body []byte) (empty bool, err error) {
	r, err := parseReport(by, body)
	if err != nil || r.state == "" {
		return r.native, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for _, h := range a.waiting {
		h.addParallel(r, now)
		if h.settledBy(r) {
			h.withdraw()
		}
	}
	a.change(a.table.sweep(now).fold(now, r))
	return r.native, nil
}
