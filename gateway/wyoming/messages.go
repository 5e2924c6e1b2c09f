package wyoming

import (
	"encoding/json"
	"fmt"

	wire "perch/voice/wyoming"
)

// Types of the events that carry the reply to a client's text, which is a transcript event. The README of the
// repository OHF-Voice/wyoming describes them.
const (
	typeHandled      = "handled"       // the whole reply
	typeNotHandled   = "not-handled"   // why there is no reply
	typeHandledStart = "handled-start" // starts a stream
	typeHandledChunk = "handled-chunk" // a part of the reply; a handled or not-handled event follows the last part
	typeHandledStop  = "handled-stop"  // ends a stream
)

// transcript is a text from a client. Home Assistant sends a Context with a conversation_id, and sometimes with a
// device_id and a satellite_id.
type transcript struct {
	Text     string          `json:"text"`
	Language string          `json:"language"`
	Context  json.RawMessage `json:"context"`
}

// conversation is the part of a transcript's context that this package uses.
type conversation struct {
	ConversationID string `json:"conversation_id"`
}

// handled is the data of the events handled and not-handled.
type handled struct {
	Text    string       `json:"text"`
	Context conversation `json:"context"`
}

// synthesize is a request to speak a text. Only the format "text" is supported.
type synthesize struct {
	wire.Synthesize
	Format string `json:"text_format"`
}

// Error codes. The protocol does not define any.
const (
	codeBusy     = "busy"       // too many requests or connections
	codeFormat   = "format"     // not an event of the protocol, or invalid data
	codeIdle     = "idle"       // no event within idleTimeout
	codeLanguage = "language"   // a language that is not offered
	codeLength   = "length"     // too much text
	codeLocal    = "local"      // a request that only programs on this machine may send
	codeNone     = "not-served" // a service that is not offered
	codeFailed   = "failed"     // an error of an engine
)

// failure is an error that is sent to the client before the connection is closed. Clients that ignore error events, such as
// older versions of Home Assistant, notice only that the connection is closed.
type failure struct {
	code, text string
	cause      error // logged but not sent, because it may contain internal details; may be nil
}

// Error implements error.
func (f *failure) Error() string {
	if f.cause != nil {
		return fmt.Sprintf("%s: %v", f.text, f.cause)
	}
	return f.text
}

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.cause }

// decode decodes the data of an event. Its error is a failure.
func decode(e wire.Event, v any) error {
	if err := e.Decode(v); err != nil {
		return &failure{codeFormat, "The data of the event is invalid.", err}
	}
	return nil
}
