package skin

import (
	"strings"
	"testing"

	"perch/gateway/avatar/feed"
)

// TestTheSchemaIsServed, and knows every kind of frame that can be subscribed to.
func TestTheSchemaIsServed(t *testing.T) {
	h := newHarness(t)
	answer, body := h.ask(t, "GET", "/v1/vtuber/schema", "")
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "application/schema+json" || body != string(schema) {
		t.Errorf("%d %v", answer.StatusCode, answer.Header)
	}
	for _, kind := range append(feed.AllKinds(), "pong", "error", "subscribe", "ping", "ack", "answer") {
		if !strings.Contains(body, `"`+kind+`": {`) {
			t.Errorf("%s is not in it", kind)
		}
	}
	for _, wrong := range []string{`{"type":"agent_state","ts":1,"state":"dancing","session_id":"s"}`, `{"type":"pong"}`,
		`{"type":"emotion","ts":1,"session_id":"s","tag":"x","intensity":0}`} {
		if validate("event", []byte(wrong)) == nil {
			t.Errorf("%s passes", wrong)
		}
	}
}
