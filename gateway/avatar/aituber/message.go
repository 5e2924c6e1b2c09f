package aituber

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"perch/limit"
)

// version is the version of the protocol.
const version = "2"

// Types of messages.
const (
	typeReady  = "session.ready"
	typeHello  = "session.hello"
	typeAck    = "ack"
	typePing   = "ping"
	typePong   = "pong"
	typeChat   = "chat.message"
	typeStart  = "chat.start"
	typeDelta  = "chat.delta"
	typeDone   = "chat.done"
	typeError  = "chat.error"
	typeCancel = "control.cancel"
)

// capabilities returns the types of messages that the server supports.
func capabilities() []string {
	return []string{typeAck, typePing, typePong, typeChat, typeStart, typeDelta, typeDone, typeError, typeCancel,
		"character.message.received", "character.message.rendered", "character.speech.start", "character.speech.done",
		"character.speech.error", "character.response.done"}
}

// envelope is a message to the page.
type envelope struct {
	Version   string `json:"version"`
	ID        string `json:"id"`
	Type      string `json:"type"`
	Session   string `json:"sessionId"`
	At        string `json:"timestamp"` // ISO 8601
	Payload   any    `json:"payload"`
	RequestID string `json:"requestId,omitempty"` // ID of the page's message that this message answers
}

// newEnvelope returns a message of type kind. request is the ID of the message to reply to, or "".
// A nil payload becomes an empty object.
func newEnvelope(session, kind, request string, payload any) envelope {
	if payload == nil {
		payload = struct{}{}
	}
	return envelope{version, "msg_" + strings.ToLower(rand.Text()), kind, session, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		payload, request}
}

// ready is the payload of session.ready.
type ready struct {
	Protocol     string   `json:"protocolVersion"`
	Capabilities []string `json:"capabilities"`
}

// receipt is the payload of ack, which confirms a message or reports its error.
type receipt struct {
	RequestID string `json:"requestId,omitempty"`
	Type      string `json:"type,omitempty"`
	Status    string `json:"status"` // ok or error
	Message   string `json:"message,omitempty"`
}

// delta is the payload of chat.delta. The page speaks text with the role assistant, and shows
// text with the role console as code.
type delta struct {
	Text    string `json:"text"`
	Role    string `json:"role"`
	Emotion string `json:"emotion"`
	Legacy  string `json:"legacyType,omitempty"` // "end" if the text is not part of a reply
}

// failure is the payload of chat.error, which the page speaks.
type failure struct {
	Message string `json:"message"`
}

// message is a message from the page. kind is one of the types above, or an unknown type.
type message struct {
	kind, id, text string
}

// errMessage is wrapped by the errors of parse.
var errMessage = errors.New("not a message of the external linkage, version 2 or 1")

// parse decodes a message of version 2, or a chat message of version 1.
func parse(data []byte) (message, error) {
	var b struct {
		Version string `json:"version"`
		Type    string `json:"type"`
		ID      string `json:"id"`
		Content string `json:"content"`
		Payload struct {
			Text string `json:"text"`
		} `json:"payload"`
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return message{}, fmt.Errorf("%w: %w", errMessage, err)
	}
	switch {
	case len(b.ID) > limit.Name:
		return message{}, fmt.Errorf("%w: id has %d bytes, more than %d", errMessage, len(b.ID), limit.Name)
	case b.Version == version && b.Type != "":
		return message{b.Type, b.ID, b.Payload.Text}, nil
	case b.Version == "" && b.Type == "chat":
		return message{typeChat, b.ID, b.Content}, nil
	}
	return message{}, errMessage
}
