package openclaw

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"perch/limit"
	"perch/plain"
)

// request is a call by a client.
type request struct {
	ID     string
	Method string
	Params json.RawMessage
}

// parseRequest reads a frame of a client. asks is false for the frame by which a client
// gives a call up: it needs no answer. Of a frame that is no request, the failure is for
// the id that it has, or for "invalid".
func parseRequest(isText bool, text []byte) (r request, asks bool, bad *failure) {
	if !isText {
		return request{ID: noID}, true, invalid("a frame is a text message, this one is binary")
	}
	var f struct {
		Type   string          `json:"type"`
		ID     string          `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return request{ID: noID}, true, invalid("invalid request frame: it is not the JSON object that belongs here")
	}
	r = request{f.ID, f.Method, f.Params}
	switch {
	case f.ID == "" || len(f.ID) > limit.Name:
		return request{ID: noID}, true, invalid("invalid request frame: id has 1 to %d bytes", limit.Name)
	case f.Type == "cancel":
		return r, false, nil
	case f.Type != "req":
		return r, true, invalid("invalid request frame: type is req, not %.40q", f.Type)
	case f.Method == "" || len(f.Method) > limit.ID:
		return r, true, invalid("invalid request frame: method has 1 to %d bytes", limit.ID)
	}
	return r, true, nil
}

// noID is the id in the response to a frame without one.
const noID = "invalid"

// into reads the parameters of a request. None are an empty object.
func (r request) into(params any) *failure {
	if len(r.Params) == 0 {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	err := json.Unmarshal(r.Params, params)
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return invalid("invalid %s params: %.100s may not be a JSON %s", r.Method, wrong.Field, wrong.Value)
	case err != nil:
		return invalid("invalid %s params: they are a JSON object", r.Method)
	}
	return nil
}

// response answers a request.
type response struct {
	Type    string   `json:"type"` // res
	ID      string   `json:"id"`
	OK      bool     `json:"ok"`
	Payload any      `json:"payload,omitempty"`
	Error   *failure `json:"error,omitempty"`
}

// message is an event sent to clients.
type message struct {
	Type    string `json:"type"` // event
	Event   string `json:"event"`
	Payload any    `json:"payload"`
	Seq     int    `json:"seq,omitempty"` // of this client's, from 1; none before it has connected
}

// failure is why a request was refused, in the gateway's shape.
type failure struct {
	Code       string          `json:"code"`
	Message    string          `json:"message"`
	Details    *failureDetails `json:"details,omitempty"`
	Retryable  bool            `json:"retryable,omitempty"`
	RetryAfter int             `json:"retryAfterMs,omitempty"`
}

// failureDetails say what a program may do about it.
type failureDetails struct {
	Code           string   `json:"code,omitempty"`
	Reason         string   `json:"reason,omitempty"`
	Expected       int      `json:"expectedProtocol,omitempty"`
	MissingScope   string   `json:"missingScope,omitempty"`
	RequiredScopes []string `json:"requiredScopes,omitempty"`
}

func (f *failure) Error() string { return f.Message }

// The gateway's codes.
const (
	invalidRequest = "INVALID_REQUEST"
	forbidden      = "FORBIDDEN"
	unavailable    = "UNAVAILABLE"
)

func invalid(format string, args ...any) *failure {
	return &failure{Code: invalidRequest, Message: fmt.Sprintf(format, args...)}
}

// busyFor is how long a client does well to wait where another turn has to end first.
const busyFor = 3000 // ms

// failed is an error of another part as a client is told it. The text of one without a
// Code stays inside.
func failed(err error) *failure {
	var coded interface {
		error
		Status() int
	}
	if !errors.As(err, &coded) {
		return &failure{Code: unavailable, Message: "the agent could not answer; the log of the appliance says why"}
	}
	f := invalid("%s", plain.Clip(coded.Error(), 1000))
	switch {
	case coded.Status() == http.StatusTooManyRequests:
		f.Code, f.Retryable, f.RetryAfter = unavailable, true, busyFor
	case coded.Status() >= http.StatusInternalServerError:
		f.Code = unavailable
	}
	return f
}
