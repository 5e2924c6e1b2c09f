package bridge

import (
	"context"
	"time"

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
	Fact      string    `json:"fact"`
	SessionID string    `json:"session_id"`
	Type      string    `json:"type"`
	Tags      []string  `json:"tags"`
	Important bool      `json:"important"`
	Expires   time.Time `json:"expires"`
}

// remember stores a fact durably, even if the client disconnects before the response.
func (a *API) remember(_ context.Context, body []byte) (done, error) {
	var f fact
	if err := httpserver.Decode(body, &f); err != nil {
		return done{}, err
	}
	text, err := requiredText("fact", f.Fact, limit.Line)
	if err != nil {
		return done{}, err
	}
	if err := agent.CheckMemoryType(f.Type); err != nil {
		return done{}, err
	}
	id, _ := a.robotOf(f.SessionID) // empty for a robot of another voice server
	_, err = a.o.Memory.Remember(agent.Entry{Name: text, Body: text, Type: f.Type, Tags: f.Tags, Important: f.Important, Expires: f.Expires,
		Robot: id, Source: "bridge"}, a.now())
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
		return done{}, httpserver.BadBody("user or assistant is needed, a text that is not empty")
	}
	err := a.o.Log.add(stored)
	return done{err == nil}, err
}
