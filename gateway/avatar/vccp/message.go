package vccp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"perch/gateway/httpserver"
	"perch/limit"
)

// Types of messages.
const (
	typePerception = "perception"
	typeAction     = "action"
	typeSystem     = "system"
	capability     = "capability" // the only category of system messages
)

// message is a message of the protocol. Messages of unknown categories are valid.
type message struct {
	Type      string          `json:"type"`
	Category  string          `json:"category"`
	Timestamp string          `json:"timestamp"` // ISO 8601
	Data      json.RawMessage `json:"data"`      // an object
}

// parseMessage decodes a message. It sets a missing timestamp to now.
func parseMessage(text []byte, now time.Time) (message, error) {
	var m message
	if len(text) > limit.Instructions {
		return message{}, fmt.Errorf("a message must have at most %d bytes", limit.Instructions)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return message{}, fmt.Errorf("a message must be an object with type, category, timestamp and data: %s", httpserver.WhyNotJSON(err))
	}
	switch {
	case m.Type != typePerception && m.Type != typeAction && m.Type != typeSystem:
		return message{}, errors.New("type must be perception, action or system")
	case m.Category == "" || len(m.Category) > limit.Word || !utf8.ValidString(m.Category) || strings.ContainsFunc(m.Category, unicode.IsControl):
		return message{}, fmt.Errorf("category must be a name of at most %d bytes", limit.Word)
	case len(m.Timestamp) > limit.Word:
		return message{}, errors.New("timestamp must be a time in ISO 8601")
	case len(m.Data) == 0 || m.Data[0] != '{':
		return message{}, errors.New("data must be an object")
	}
	if m.Timestamp == "" {
		m.Timestamp = formatTime(now)
	}
	return m, nil
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
