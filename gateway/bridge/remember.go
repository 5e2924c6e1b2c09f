package bridge

import (
	"time"

	"perch/agent"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// What is kept: of a fact in bytes, of a turn in characters.
const mostUser = 500

// done is the answer of acts without a result.
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

// remember keeps a fact for good. The client need not wait for the answer: the
// fact is kept though it hangs up.
func (d *API) remember(body []byte) (done, error) {
	var f fact
	if err := httpserver.Decode(body, &f); err != nil {
		return done{}, err
	}
	text, err := needed("fact", f.Fact, limit.Line)
	if err != nil {
		return done{}, err
	}
	if err := agent.CheckMemoryType(f.Type); err != nil {
		return done{}, err
	}
	id, _ := d.robotOf(f.SessionID) // none where the talk is elsewhere
	_, err = d.o.Memory.Remember(agent.Entry{Name: text, Body: text, Type: f.Type, Tags: f.Tags, Important: f.Important, Expires: f.Expires,
		Robot: id, Source: "bridge"}, d.now())
	return done{err == nil}, err
}

// turn is the body of POST /api/voice/memory_log.
type turn struct {
	User      string `json:"user"`
	Assistant string `json:"assistant"`
	SessionID string `json:"session_id"`
}

// memoryLog stores a turn of a voice server elsewhere. It is on the disk when memoryLog
// returns.
func (d *API) memoryLog(body []byte) (done, error) {
	var t turn
	if err := httpserver.Decode(body, &t); err != nil {
		return done{}, err
	}
	kept := Turn{At: d.now(), Session: plain.Clip(plain.Line(t.SessionID), limit.Session), User: cut(plain.Line(t.User), mostUser),
		Assistant: cut(plain.Line(t.Assistant), limit.Line)}
	if kept.User == "" && kept.Assistant == "" {
		return done{}, httpserver.BadBody("user or assistant is needed, a text that is not empty")
	}
	err := d.o.Log.add(kept)
	return done{err == nil}, err
}
