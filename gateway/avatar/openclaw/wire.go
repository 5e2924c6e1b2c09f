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
	Type, ID, Method string
	Params           json.RawMessage
}

// parseRequest decodes a frame of a client. asks is false for a frame that cancels a call,
// which is not answered. The request of an invalid frame has an ID to answer to.
func parseRequest(isText bool, text []byte) (r request, asks bool, bad *failure) {
	if !isText {
		return request{ID: noID}, true, invalid("a frame is a text message, this one is binary")
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return request{ID: noID}, true, invalid("invalid request frame: it is not the JSON object that belongs here")
	}
	switch {
	case r.ID == "" || len(r.ID) > limit.Name:
		return request{ID: noID}, true, invalid("invalid request frame: id has 1 to %d bytes", limit.Name)
	case r.Type == "cancel":
		return r, false, nil
	case r.Type != "req":
		return r, true, invalid("invalid request frame: type is req, not %.40q", r.Type)
	case r.Method == "" || len(r.Method) > limit.ID:
		return r, true, invalid("invalid request frame: method has 1 to %d bytes", limit.ID)
	}
	return r, true, nil
}

// noID is the id in the response to a frame without one.
const noID = "invalid"

// into decodes the parameters of a request, which may be missing.
func (r request) into(params any) *failure {
	if len(r.Params) == 0 {
		return nil
	}
	err := json.Unmarshal(r.Params, params)
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is && wrong.Field != "" {
		return invalid("invalid %s params: %.100s may not be a JSON %s", r.Method, wrong.Field, wrong.Value)
	}
	if err != nil {
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

// newResponse returns the answer to a request, or its error if bad is not nil.
func newResponse(id string, payload any, bad *failure) response {
	return response{"res", id, bad == nil, payload, bad}
}

// message is an event sent to clients.
type message struct {
	Type    string `json:"type"` // event
	Event   string `json:"event"`
	Payload any    `json:"payload"`
	Seq     int    `json:"seq,omitempty"` // within the connection, from 1; omitted for the challenge
}

// failure is an error in the gateway's shape.
type failure struct {
	Code       string          `json:"code"`
	Message    string          `json:"message"`
	Details    *failureDetails `json:"details,omitempty"`
	Retryable  bool            `json:"retryable,omitempty"`
	RetryAfter int             `json:"retryAfterMs,omitempty"`
}

// failureDetails tell a program what to do about an error.
type failureDetails struct {
	Code           string   `json:"code,omitempty"`
	Reason         string   `json:"reason,omitempty"`
	Expected       int      `json:"expectedProtocol,omitempty"`
	MissingScope   string   `json:"missingScope,omitempty"`
	RequiredScopes []string `json:"requiredScopes,omitempty"`
}

func (f *failure) with(d failureDetails) *failure {
	f.Details = &d
	return f
}

// The gateway's error codes.
const (
	invalidRequest = "INVALID_REQUEST"
	forbidden      = "FORBIDDEN"
	unavailable    = "UNAVAILABLE"
)

func invalid(format string, args ...any) *failure {
	return &failure{Code: invalidRequest, Message: fmt.Sprintf(format, args...)}
}

// busyFor is how long a client should wait before it repeats a text that was refused as busy.
const busyFor = 3000 // ms

// failed returns an error in the gateway's shape. The text of an error without a Status is
// not disclosed.
func failed(err error) *failure {
	coded, is := errors.AsType[interface {
		error
		Status() int
	}](err)
	if !is {
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
