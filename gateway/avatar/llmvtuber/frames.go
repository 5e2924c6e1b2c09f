package llmvtuber

import (
	"cmp"
	"time"

	"perch/gateway/avatar/feed"
)

// line is a message with a type and a text: full-text is a subtitle, control a command to
// the client, user-input-transcription the question that was recognized.
type line struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func control(command string) line { return line{"control", command} }

func subtitle(text string) line { return line{"full-text", text} }

// bare is a message without further fields.
type bare struct {
	Type string `json:"type"`
}

// failed is an error, which the client shows for a moment.
type failed struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func newFailed(sentence string) failed { return failed{"error", sentence} }

// configuration names the model to load, and the character.
type configuration struct {
	Type   string `json:"type"`
	Model  any    `json:"model_info"`
	Name   string `json:"conf_name"`
	ID     string `json:"conf_uid"`
	Client string `json:"client_uid"`
}

// group lists the clients that talk together, which Perch does not support.
type group struct {
	Type    string   `json:"type"`
	Members []string `json:"members"`
	Owner   bool     `json:"is_owner"`
}

func emptyGroup() group { return group{Type: "group-update", Members: []string{}} }

// history is the answer to a request about a history.
type history struct {
	Type    string `json:"type"`
	History string `json:"history_uid"`
	Success *bool  `json:"success,omitempty"`
}

// audio is a sentence with its sound.
type audio struct {
	Type      string    `json:"type"`
	Sound     *string   `json:"audio"` // WAV in base64, or nil to show the sentence only
	Volumes   []float64 `json:"volumes"`
	Slice     int       `json:"slice_length"` // milliseconds of each volume
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

// actions are what the model does during a sentence.
type actions struct {
	Expressions []any `json:"expressions"` // numbers or names of the model's expressions
}

// tool is the status of a tool.
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
	return tool{"tool_call_status", t.ID, t.Name, name, t.Status, cmp.Or(t.Content, t.Name), time.Unix(t.TS, 0).UTC().Format(time.RFC3339)}
}
