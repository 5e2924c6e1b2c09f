package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"perch/limit"
	"perch/remote"
)

// maxLine is the maximum length of a message in bytes. A message may contain the whole
// output of a tool.
const maxLine = 8 << 20

// message is a JSON-RPC 2.0 message. A request has a method and an ID, a notification
// only a method, and a response only an ID.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// rpcError is the error in a response.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"` // details, whose form the agent chooses
}

// Error returns the message, the details in the data and the code, without texts that look
// like keys.
func (e *rpcError) Error() string {
	said := e.Message
	if details := e.details(); details != "" && !strings.Contains(said, details) {
		said += ": " + details
	}
	return fmt.Sprintf("%s (%d)", remote.Redact(said, limit.Name), e.Code)
}

// details returns the reason that the error's data contains, or "". It is often better than
// the message: agents send "Internal error" with {"details": "..."}.
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

// Error codes of JSON-RPC and of the Agent Client Protocol.
const (
	codeNoMethod  = -32601
	codeBadParams = -32602
	codeAgent     = -32000 // error of the agent itself; usually it needs a login
)

// hasID reports whether the message has an ID of acceptable length.
func (m *message) hasID() bool {
	return len(m.ID) > 0 && len(m.ID) <= limit.Session && !bytes.Equal(m.ID, []byte("null"))
}
