package wyoming

import (
	"encoding/json"
	"fmt"

	wire "perch/voice/wyoming"
)

// The types of event that answering text needs, as the README of
// OHF-Voice/wyoming lists them. The request is a transcript.
const (
	typeHandled      = "handled"       // the whole answer
	typeNotHandled   = "not-handled"   // why there is none
	typeHandledStart = "handled-start" // streaming: begins
	typeHandledChunk = "handled-chunk" // a part; the whole still comes as handled
	typeHandledStop  = "handled-stop"
)

// transcript is a text to answer. Home Assistant's context holds its
// conversation_id, and device_id and satellite_id where it knows them.
type transcript struct {
	Text     string          `json:"text"`
	Language string          `json:"language"`
	Context  json.RawMessage `json:"context"`
}

// talk is the part of a context that belongs to us, both ways.
type talk struct {
	ConversationID string `json:"conversation_id"`
}

// handled is an answer to text, or why there is none.
type handled struct {
	Text    string `json:"text"`
	Context talk   `json:"context"`
}

// synthesize is a request for the sound of a text. Format is "text" where it
// is anything we can speak.
type synthesize struct {
	wire.Synthesize
	Format string `json:"text_format"`
}

// The codes of the errors we send. The protocol prescribes none.
const (
	codeBusy     = "busy"       // more at once than is served
	codeFormat   = "format"     // not the protocol, or data that makes no sense
	codeIdle     = "idle"       // nothing came for too long
	codeLanguage = "language"   // one that is not offered
	codeLength   = "length"     // too much text
	codeNone     = "not-served" // a service that this Perch does not offer
	codeFailed   = "failed"     // the engine did
)

// failure is sent before the connection is closed. The close ends the waiting of
// clients that know no errors, older Home Assistants among them.
type failure struct {
	code, text string
	cause      error // for the log only; it may name internals
}

func (f *failure) Error() string {
	if f.cause != nil {
		return fmt.Sprintf("%s: %v", f.text, f.cause)
	}
	return f.text
}

func (f *failure) Unwrap() error { return f.cause }

// decode reads the data of an event.
func decode(e wire.Event, v any) error {
	if err := e.Decode(v); err != nil {
		return &failure{codeFormat, "The data of that event makes no sense.", err}
	}
	return nil
}
