package openclaw

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"perch/limit"
	"perch/plain"
)

// request is a request from a client.
type request struct {
	Type, ID, Method string
	Params           json.RawMessage
}

// parseRequest decodes a frame from a client. needsResponse is false for a frame that cancels an
// earlier request. If bad is not nil, the frame is invalid, and only r.ID may be used, as the ID of the
// response.
func parseRequest(isText bool, text []byte) (r request, needsResponse bool, bad *failure) {
	if !isText {
		return request{ID: noID}, true, invalid("a frame must be a text message, not a binary one")
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return request{ID: noID}, true, invalid("invalid request frame: not a JSON object with type, id and method")
	}
	switch {
	case r.ID == "" || len(r.ID) > limit.Name:
		return request{ID: noID}, true, invalid("invalid request frame: id must have 1 to %d bytes", limit.Name)
	case r.Type == "cancel":
		return r, false, nil
	case r.Type != "req":
		return r, true, invalid("invalid request frame: type must be req, not %.40q", r.Type)
	case r.Method == "" || len(r.Method) > limit.ID:
		return r, true, invalid("invalid request frame: method must have 1 to %d bytes", limit.ID)
	}
	return r, true, nil
}

// noID is the ID in the response to a frame without a valid ID.
const noID = "invalid"

// decodeParams decodes the parameters of a request. Missing parameters are not an error.
func (r request) decodeParams(params any) *failure {
	if len(r.Params) == 0 {
		return nil
	}
	err := json.Unmarshal(r.Params, params)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return invalid("invalid %s params: %.100s may not be a JSON %s", r.Method, wrong.Field, wrong.Value)
	}
	if err != nil {
		return invalid("invalid %s params: not a JSON object", r.Method)
	}
	return nil
}

// response is the response to a request.
type response struct {
	Type    string   `json:"type"` // always res
	ID      string   `json:"id"`
	OK      bool     `json:"ok"`
	Payload any      `json:"payload,omitempty"`
	Error   *failure `json:"error,omitempty"`
}

// newResponse returns the response to the request with an ID. If bad is not nil, the response is
// that error.
func newResponse(id string, payload any, bad *failure) response {
	return response{"res", id, bad == nil, payload, bad}
}

// eventMessage is an event that is sent to a client.
type eventMessage struct {
	Type    string `json:"type"` // always event
	Event   string `json:"event"`
	Payload any    `json:"payload"`
	Seq     int    `json:"seq,omitempty"` // number of the event in the connection, from 1; omitted for the challenge
}

// failure is an error in the gateway's format.
type failure struct {
	Code       string          `json:"code"`
	Message    string          `json:"message"`
	Details    *failureDetails `json:"details,omitempty"`
	Retryable  bool            `json:"retryable,omitempty"`
	RetryAfter int             `json:"retryAfterMs,omitempty"`
}

// failureDetails describe an error in a form that programs can evaluate.
type failureDetails struct {
	Code           string   `json:"code,omitempty"`
	Expected       int      `json:"expectedProtocol,omitempty"`
	MissingScope   string   `json:"missingScope,omitempty"`
	RequiredScopes []string `json:"requiredScopes,omitempty"`
}

// with sets the details of the error, and returns the error.
func (f *failure) with(d failureDetails) *failure {
	f.Details = &d
	return f
}

// Values of failure.Code.
const (
	invalidRequest = "INVALID_REQUEST"
	forbidden      = "FORBIDDEN"
	unavailable    = "UNAVAILABLE"
)

// invalid returns an error with the code invalidRequest.
func invalid(format string, args ...any) *failure {
	return &failure{Code: invalidRequest, Message: fmt.Sprintf(format, args...)}
}

// retryAfter is how long, in milliseconds, a client should wait before it sends a text again
// that was refused because the agent was busy.
const retryAfter = 3000

// newFailure converts an error to the gateway's format. The text of an error that has no Status
// method is not disclosed.
func newFailure(err error) *failure {
	coded, ok := errors.AsType[interface {
		error
		Status() int
	}](err)
	if !ok {
		return &failure{Code: unavailable, Message: "the agent could not answer; the log of the appliance says why"}
	}
	f := invalid("%s", plain.Clip(coded.Error(), 1000))
	switch {
	case coded.Status() == http.StatusTooManyRequests:
		f.Code, f.Retryable, f.RetryAfter = unavailable, true, retryAfter
	case coded.Status() >= http.StatusInternalServerError:
		f.Code = unavailable
	}
	return f
}
