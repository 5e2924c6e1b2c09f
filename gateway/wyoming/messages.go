package wyoming

import (
	"encoding/json"
	"fmt"

	wire "perch/voice/wyoming"
)

// Types of events for answering text, see the README of OHF-Voice/wyoming. The request is a
// transcript.
const (
	typeHandled      = "handled"       // the whole answer
	typeNotHandled   = "not-handled"   // why the text was not answered
	typeHandledStart = "handled-start" // begins a stream
	typeHandledChunk = "handled-chunk" // a part; the whole follows as handled
	typeHandledStop  = "handled-stop"
)

// transcript is a text to answer. Home Assistant's context has a conversation_id, and may
// have a device_id and a satellite_id.
type transcript struct {
	Text     string          `json:"text"`
	Language string          `json:"language"`
	Context  json.RawMessage `json:"context"`
}

// talk is the used part of a context.
type talk struct {
	ConversationID string `json:"conversation_id"`
}

// handled is the data of handled and not-handled.
type handled struct {
	Text    string `json:"text"`
	Context talk   `json:"context"`
}

// synthesize is a request for the sound of a text. Only the format "text" can be spoken.
type synthesize struct {
	wire.Synthesize
	Format string `json:"text_format"`
}

// Codes of errors. They are not part of the protocol.
const (
	codeBusy     = "busy"       // too many requests or connections
	codeFormat   = "format"     // not the protocol, or invalid data
	codeIdle     = "idle"       // nothing came for too long
	codeLanguage = "language"   // not offered
	codeLength   = "length"     // too much text
	codeNone     = "not-served" // a service that is not offered
	codeFailed   = "failed"     // an engine's error
)

// failure is an error that is sent before the connection is closed. Clients that do not know
// errors, such as older Home Assistants, notice the close.
type failure struct {
	code, text string
	cause      error // only logged, because it may name internals
}

func (f *failure) Error() string {
	if f.cause != nil {
		return fmt.Sprintf("%s: %v", f.text, f.cause)
	}
	return f.text
}

func (f *failure) Unwrap() error { return f.cause }

// decode decodes the data of an event.
func decode(e wire.Event, v any) error {
	if err := e.Decode(v); err != nil {
		return &failure{codeFormat, "The data of that event makes no sense.", err}
	}
	return nil
}
