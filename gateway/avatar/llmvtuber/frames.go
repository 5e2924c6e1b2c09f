package llmvtuber

import (
	"cmp"
	"time"

	"perch/gateway/avatar/feed"
)

// textMessage is a message with a text. Its type is full-text for a subtitle, control for a
// command to the client, or user-input-transcription for the text of the user's speech.
type textMessage struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func newControl(command string) textMessage { return textMessage{"control", command} }

func newSubtitle(text string) textMessage { return textMessage{"full-text", text} }

// bareMessage is a message without data.
type bareMessage struct {
	Type string `json:"type"`
}

// errorMessage is an error, which the client shows for a moment.
type errorMessage struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func newErrorMessage(sentence string) errorMessage { return errorMessage{"error", sentence} }

// configuration tells the client which model to load, the name of the character, and the client's ID.
type configuration struct {
	Type   string `json:"type"`
	Model  any    `json:"model_info"`
	Name   string `json:"conf_name"`
	ID     string `json:"conf_uid"`
	Client string `json:"client_uid"`
}

// group lists the clients that share a conversation. Perch does not support this, so the list
// is always empty.
type group struct {
	Type    string   `json:"type"`
	Members []string `json:"members"`
	Owner   bool     `json:"is_owner"`
}

func emptyGroup() group { return group{Type: "group-update", Members: []string{}} }

// history is the response to a request that creates or deletes a history, the record of a conversation.
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
	Slice     int       `json:"slice_length"` // duration in milliseconds of the sound that each volume describes
	Display   display   `json:"display_text"`
	Actions   *actions  `json:"actions"`
	Forwarded bool      `json:"forwarded"`
}

// display is the text that the client shows for a sentence.
type display struct {
	Text   string `json:"text"`
	Name   string `json:"name"`
	Avatar string `json:"avatar"` // always empty
}

// actions are the expressions of the model during a sentence.
type actions struct {
	Expressions []any `json:"expressions"` // numbers or names of the model's expressions
}

// tool is the status of a tool call.
type tool struct {
	Type    string `json:"type"`
	ID      string `json:"tool_id"`
	Tool    string `json:"tool_name"`
	Name    string `json:"name"`   // name of the character
	Status  string `json:"status"` // running, completed or error
	Content string `json:"content"`
	At      string `json:"timestamp"` // RFC 3339
}

// newTool returns the message for a tool call by the character called name.
func newTool(t feed.Tool, name string) tool {
	return tool{"tool_call_status", t.ID, t.Name, name, t.Status, cmp.Or(t.Content, t.Name), time.Unix(t.TS, 0).UTC().Format(time.RFC3339)}
}
