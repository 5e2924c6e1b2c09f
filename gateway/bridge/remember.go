package bridge

import (
	"context"

	"perch/agent"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// maxUserText is the maximum length of the person's text in a stored turn, in characters.
const maxUserText = 500

// done is the response to a request without a result.
type done struct {
	OK bool `json:"ok"`
}

// fact is the body of POST /api/voice/remember.
type fact struct {
	agent.Fact
	SessionID string `json:"session_id"`
}

// remember stores a fact durably, even if the client disconnects before the response.
func (a *API) remember(_ context.Context, body []byte) (done, error) {
	var f fact
	if err := httpserver.Decode(body, &f); err != nil {
		return done{}, err
	}
	e, err := f.Entry()
	if err != nil {
		return done{}, err
	}
	e.Robot, _ = a.robotOf(f.SessionID) // "" for a robot of another voice server
	e.Source = "bridge"
	_, err = a.o.Memory.Remember(e, a.now())
	return done{err == nil}, err
}

// turn is the body of POST /api/voice/memory_log.
type turn struct {
	User      string `json:"user"`
	Assistant string `json:"assistant"`
	SessionID string `json:"session_id"`
}

// memoryLog stores a turn of another voice server durably.
func (a *API) memoryLog(_ context.Context, body []byte) (done, error) {
	var t turn
	if err := httpserver.Decode(body, &t); err != nil {
		return done{}, err
	}
	stored := Turn{At: a.now(), Session: plain.Clip(plain.Line(t.SessionID), limit.Session), User: truncate(plain.Line(t.User), maxUserText),
		Assistant: truncate(plain.Line(t.Assistant), limit.Line)}
	if stored.User == "" && stored.Assistant == "" {
		return done{}, httpserver.BadBody("user and assistant must not both be empty")
	}
	err := a.o.Log.add(stored)
	return done{err == nil}, err
}
