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

// progressHeader is the request header that adds the status of tools to a streamed chat
// completion. The events have the format of Hermes Agent's API server
// (NousResearch/hermes-agent, gateway/platforms/api_server_openai_routes.py). Hermes sends the
// events to all clients; its pull request 49069 proposes this header to disable them. Perch sends
// them only on request, because some clients fail on events that are not chunks.
const progressHeader = "X-Hermes-Tool-Progress"

// wantsProgress reports whether a value of progressHeader requests the status of tools.
func wantsProgress(header string) bool {
	return slices.Contains([]string{"1", "on", "true", "yes"}, strings.ToLower(strings.TrimSpace(header)))
}

// progress sends the status of tools in a stream.
type progress struct {
	send func(text string) error
	open map[string]bool // IDs of the calls whose start was sent
}

func newProgress(send func(string) error) *progress { return &progress{send, map[string]bool{}} }

// toolProgress is the data of the event for the start or the end of a tool call. Emoji and Label are
// empty at the end.
type toolProgress struct {
	Tool   string `json:"tool"`
	Emoji  string `json:"emoji,omitempty"`
	Label  string `json:"label,omitempty"`
	CallID string `json:"toolCallId"`
	Status string `json:"status"` // "running" or "completed"; a failed call is completed too
}

// sendStatus sends the start or the end of a tool call.
func (p *progress) sendStatus(t event.ToolStatus) error {
	e := toolProgress{Tool: plain.Clip(t.Name, limit.Name), CallID: plain.Clip(t.ID, limit.Name), Status: "completed"}
	running := t.Status == event.ToolRunning
	switch {
	case !running && !p.open[t.ID]:
		return nil // the start of the call was not sent
	case running:
		e.Status, e.Emoji, e.Label = "running", "🔧", plain.Clip(cmp.Or(t.Detail, t.Name), limit.Line)
		p.open[t.ID] = true
	default:
		delete(p.open, t.ID)
	}
	return p.send("event: hermes.tool.progress\ndata: " + string(httpserver.Encode(e)) + "\n\n")
}
