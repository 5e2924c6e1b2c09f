package llmvtuber

import (
	"time"

	"perch/gateway/avatar/feed"
)

// line is a message with a type and a text: full-text is a subtitle, control one of the
// client's own commands, user-input-transcription the question that was understood.
type line struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func control(command string) line { return line{"control", command} }

func subtitle(text string) line { return line{"full-text", text} }

// bare is a message that has a type and nothing else.
type bare struct {
	Type string `json:"type"`
}

// failed is shown for a moment.
type failed struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func newFailed(sentence string) failed { return failed{"error", sentence} }

// configuration names the model that the client loads, and the character.
type configuration struct {
	Type   string `json:"type"`
	Model  any    `json:"model_info"`
	Name   string `json:"conf_name"`
	ID     string `json:"conf_uid"`
	Client string `json:"client_uid"`
}

// group are the clients that talk together, which is nobody here.
type group struct {
	Type    string   `json:"type"`
	Members []string `json:"members"`
	Owner   bool     `json:"is_owner"`
}

// audio is a sentence with its sound.
type audio struct {
	Type      string    `json:"type"`
	Sound     *string   `json:"audio"` // WAV, base64; nil is shown and not spoken
	Volumes   []float64 `json:"volumes"`
	Slice     int       `json:"slice_length"` // of each volume, in milliseconds
	Display   display   `json:"display_text"`
	Actions   *actions  `json:"actions"`
	Forwarded bool      `json:"forwarded"`
}

// display is a sentence as it is shown.
type display struct {
	Text   string `json:"text"`
	Name   string `json:"name"`
	Avatar string `json:"avatar"`
}

// actions are what the model does with a sentence.
type actions struct {
	Expressions []any `json:"expressions"` // each a number or a name of the model's
}

// tool is what a tool does.
type tool struct {
	Type    string `json:"type"`
	ID      string `json:"tool_id"`
	Tool    string `json:"tool_name"`
	Name    string `json:"name"`
	Status  string `json:"status"` // running, completed or error
	Content string `json:"content"`
	At      string `json:"timestamp"` // RFC 3339
}

func newTool(t feed.Tool, name string) tool {
	content := t.Content
	if content == "" {
		content = t.Name
	}
	return tool{"tool_call_status", t.ID, t.Name, name, t.Status, content, time.Unix(t.TS, 0).UTC().Format(time.RFC3339)}
}
