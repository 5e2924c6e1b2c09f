package xiaozhi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Request is a JSON-RPC request to the robot's MCP server, or a notification if ID is 0. IDs are numbers
// because the firmware does not respond to requests with other IDs.
type Request struct {
	ID     int
	Method string
	Params any // encoded as a JSON object; nil for none
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

// Response is the response to a request. Either Result or Error is nil.
type Response struct {
	ID     int // of the request
	Result json.RawMessage
	Error  *RPCError
}

// RPCError is the error of a response. The firmware sends no code.
type RPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Error implements error.
func (e *RPCError) Error() string { return e.Message }

// ParseResponse parses the payload of an MCP message from a robot. It returns an error if the payload is not
// a response, because robots send only responses. Errors wrap ErrMessage.
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
		return Response{}, fmt.Errorf("%w: mcp payload that is not a response", ErrMessage)
	}
	return Response{ID: *w.ID, Result: w.Result, Error: w.Error}, nil
}

// unescapedError parses an error response whose message contains quotes. The firmware does not escape
// them, so the text is not valid JSON:
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
