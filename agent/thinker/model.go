package thinker

import (
	"context"
	"encoding/json"

	"perch/device"
)

// Model is a language model behind a driver. It continues a conversation, and
// may ask for tools to be run first. What it is told and what becomes of its
// words is not its business.
type Model interface {
	// Name is the driver's kind as the configuration spells it.
	Name() string
	// Continue gives the model's next message through out while it is being
	// produced, and says why it ended. It returns out's error when that fails
	// and ctx's when cancelled. It wraps ErrAway, with a sentence that names
	// the cause and holds no key, where the model cannot be reached, refuses
	// the key, or is not there.
	Continue(ctx context.Context, p Prompt, out func(Piece) error) (Stop, error)
}

// Prompt is all that a model is told.
type Prompt struct {
	System   string
	Messages []Message // oldest first; the last is of the user or a tool
	Tools    []Tool
}

// Role says whose a message is.
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
	CallID   string           // of a tool: the call it answers
	Failed   bool             // of a tool
}

// ModelTool is a tool as a model is offered it. The name is one that models
// take; the schema is a JSON Schema object.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// ToolCall is a tool a model asks for. Arguments are a JSON object.
type ToolCall struct {
	ID        string // unique in its message
	Name      string
	Arguments json.RawMessage
}

// Piece is a part of a message as it is produced: some text, or one whole call.
type Piece struct {
	Text string
	Call *ToolCall
}

// Stop says why a message ended.
type Stop string

// Why a message ended.
const (
	StopEnd     Stop = "end"
	StopTools   Stop = "tools"  // the calls are to be answered
	StopLength  Stop = "length" // it was cut off
	StopRefused Stop = "refused"
)
