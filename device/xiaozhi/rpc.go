package xiaozhi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// JSON-RPC with the robot's MCP server. Ids are numbers: the firmware never answers a
// request with a string id.

// Request is a JSON-RPC request or, with ID 0, a notification.
type Request struct {
	ID     int
	Method string
	Params any // an object, or nil
}

// Append appends the request's JSON.
func (r Request) Append(dst []byte) []byte {
	w := struct {
		Version string `json:"jsonrpc"`
		ID      int    `json:"id,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{"2.0", r.ID, r.Method, r.Params}
	return appendJSON(dst, w)
}

// Response is the answer to the request with that ID.
type Response struct {
	ID     int
	Result json.RawMessage // nil if Error is set
	Error  *RPCError
}

// RPCError is the failure of a request. The firmware sends no code.
type RPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *RPCError) Error() string { return e.Message }

// ParseResponse parses an MCP payload of a robot, which sends only responses.
func ParseResponse(payload json.RawMessage) (Response, error) {
	var w struct {
		ID     *int            `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *RPCError       `json:"error"`
	}
	if err := json.Unmarshal(payload, &w); err != nil {
		return Response{}, fmt.Errorf("%w: mcp: %w", ErrMessage, err)
	}
	if w.ID == nil || (w.Result == nil) == (w.Error == nil) {
		return Response{}, fmt.Errorf("%w: mcp payload that is no response", ErrMessage)
	}
	return Response{ID: *w.ID, Result: w.Result, Error: w.Error}, nil
}

// unescapedError recovers an error of the firmware whose message contains quotes: it
// does not escape them, so that the whole message is not valid JSON.
//
//	{"session_id":"…","type":"mcp","payload":{"jsonrpc":"2.0","id":3,"error":{"message":"Unknown "x""}}}
func unescapedError(text []byte) (FromMCP, bool) {
	_, rest, found := bytes.Cut(text, []byte(`"type":"mcp","payload":{"jsonrpc":"2.0","id":`))
	if !found {
		return FromMCP{}, false
	}
	number, rest, found := bytes.Cut(rest, []byte(`,"error":{"message":"`))
	id, err := strconv.Atoi(string(number))
	message, end := bytes.CutSuffix(rest, []byte(`"}}}`))
	if !found || err != nil || !end {
		return FromMCP{}, false
	}
	return FromMCP{Payload: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"error":{"message":%s}}`, id, appendJSON(nil, string(message)))}, true
}
