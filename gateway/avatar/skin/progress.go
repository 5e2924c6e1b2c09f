package skin

import (
	"cmp"
	"slices"
	"strings"

	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// progressHeader requests the status of tools in a stream of chat completions. The events are
// those of Hermes Agent's API server (NousResearch/hermes-agent,
// gateway/platforms/api_server_openai_routes.py), which sends them to all clients; a change
// proposed there (pull request 49069) uses this header to switch them off. Clients that take
// every event for a chunk fail on them, so here the header has to request them.
const progressHeader = "X-Hermes-Tool-Progress"

func asksForProgress(header string) bool {
	return slices.Contains([]string{"1", "on", "true", "yes"}, strings.ToLower(strings.TrimSpace(header)))
}

// progress sends the status of tools in a stream.
type progress struct {
	send func(text string) error
	open map[string]bool // calls whose start was sent
}

func newProgress(send func(string) error) *progress { return &progress{send, map[string]bool{}} }

// toolProgress is one event. The end of a call, also of a failed one, has neither emoji nor
// label.
type toolProgress struct {
	Tool   string `json:"tool"`
	Emoji  string `json:"emoji,omitempty"`
	Label  string `json:"label,omitempty"`
	CallID string `json:"toolCallId"`
	Status string `json:"status"` // running or completed
}

func (p *progress) sendStatus(t event.ToolStatus) error {
	e := toolProgress{Tool: plain.Clip(t.Name, limit.Name), CallID: plain.Clip(t.ID, limit.Name), Status: "completed"}
	running := t.Status == event.ToolRunning
	switch {
	case !running && !p.open[t.ID]:
		return nil // its start was not sent
	case running:
		e.Status, e.Emoji, e.Label = "running", "🔧", plain.Clip(cmp.Or(t.Detail, t.Name), limit.Line)
		p.open[t.ID] = true
	default:
		delete(p.open, t.ID)
	}
	return p.send("event: hermes.tool.progress\ndata: " + string(httpserver.Encode(e)) + "\n\n")
}
