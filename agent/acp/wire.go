package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"perch/limit"
	"perch/remote"
)

// mostLine bounds a message, in bytes.
const mostLine = 8 << 20 // a tool's whole output may stand in one

// message is any JSON-RPC 2.0 object: a request has a method and an id, a
// notification a method, a response an id.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// rpcError is the error of a request, in the peer's words.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"` // details, in a form of the peer's own
}

func (e *rpcError) Error() string {
	said := e.Message
	if details := e.details(); details != "" && !strings.Contains(said, details) {
		said += ": " + details
	}
	return fmt.Sprintf("%s (%d)", remote.Redact(said, limit.Name), e.Code)
}

// details returns the reason in an error's data, which is often better than its message: agents send
// "Internal error" with {"details": "..."}.
func (e *rpcError) details() string {
	var text string
	if json.Unmarshal(e.Data, &text) == nil {
		return text
	}
	var data struct{ Details any }
	if json.Unmarshal(e.Data, &data) != nil {
		return ""
	}
	if text, _ = data.Details.(string); text == "" {
		_, text = remote.Message(e.Data)
	}
	return text
}

// Codes of JSON-RPC and of the protocol.
const (
	codeNoMethod  = -32601
	codeBadParams = -32602
	codeAgent     = -32000 // of the agent itself: usually a login is needed
)

// identified reports whether the message has an id that can be answered.
func (m *message) identified() bool {
	return len(m.ID) > 0 && len(m.ID) <= limit.Session && !bytes.Equal(m.ID, []byte("null"))
}
