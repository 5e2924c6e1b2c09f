package skin

import (
	"cmp"
	"strings"

	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// progressHeader asks a stream of chat completions for what the agent works with. The
// events are those of Hermes Agent's API server (NousResearch/hermes-agent,
// gateway/platforms/api_server_openai_routes.py), which sends them to everybody; a change
// proposed there (pull request 49069) has this header say off. Clients that take every
// event for a chunk break over them, so that here the header has to ask for them.
const progressHeader = "X-Hermes-Tool-Progress"

func asksForProgress(header string) bool {
	switch strings.ToLower(strings.TrimSpace(header)) {
	case "1", "on", "true", "yes":
		return true
	}
	return false
}

// progress tells a stream what the agent works with.
type progress struct {
	send func(text string) error
	open map[string]bool // the calls that were told
}

func newProgress(send func(string) error) *progress { return &progress{send, map[string]bool{}} }

// toolProgress is one event. The end of a call has neither emoji nor label; one that
// failed has ended, too.
type toolProgress struct {
	Tool   string `json:"tool"`
	Emoji  string `json:"emoji,omitempty"`
	Label  string `json:"label,omitempty"`
	CallID string `json:"toolCallId"`
	Status string `json:"status"` // running or completed
}

func (p *progress) sendStatus(t event.ToolStatus) error {
	told := toolProgress{Tool: plain.Clip(t.Name, limit.Name), CallID: plain.Clip(t.ID, limit.Name), Status: "completed"}
	running := t.Status == event.ToolRunning
	switch {
	case !running && !p.open[t.ID]:
		return nil // nobody knows of it
	case running:
		told.Status, told.Emoji, told.Label = "running", "🔧", plain.Clip(cmp.Or(t.Detail, t.Name), limit.Line)
		p.open[t.ID] = true
	default:
		delete(p.open, t.ID)
	}
	return p.send("event: hermes.tool.progress\ndata: " + string(httpserver.Encode(told)) + "\n\n")
}
