package thinker

import (
	"context"
	"encoding/json"

	"perch/device"
)

// Model is a language model behind a driver. It continues a conversation, and may
// ask for tools to be run first. It knows nothing of robots and speech.
type Model interface {
	// Name is the driver's kind as the configuration spells it.
	Name() string
	// Continue passes the model's next message to out while the model writes it,
	// and returns why the message ended. It returns out's error if out fails, and
	// ctx's error if ctx ends. It wraps ErrAway if the model cannot be reached, is
	// not there or refuses the key; the error names the cause and holds no key.
	Continue(ctx context.Context, p Prompt, out func(Piece) error) (Stop, error)
}

// Prompt is the whole input of a model.
type Prompt struct {
	System   string
	Messages []Message // oldest first; the last one is the user's or a tool's
	Tools    []Tool
}

// Role is the author of a message.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role     Role
	Text     string
	Pictures []device.Picture // of the user
	Calls    []ToolCall       // of the assistant
	CallID   string           // of a tool: the call that the message answers
	Failed   bool             // of a tool
}

// Tool is a tool as a model is offered it. Its name has only characters that all
// models accept; its schema is a JSON Schema object.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// ToolCall is a model's request to run a tool. Arguments is a JSON object.
type ToolCall struct {
	ID        string // unique in its message
	Name      string
	Arguments json.RawMessage
}

// Piece is a part of a message: some text, or one whole call.
type Piece struct {
	Text string
	Call *ToolCall
}

// Stop is why a message ended.
type Stop string

// Why a message ended.
const (
	StopEnd     Stop = "end"
	StopTools   Stop = "tools"  // the model waits for the results of its calls
	StopLength  Stop = "length" // it was cut off
	StopRefused Stop = "refused"
)
