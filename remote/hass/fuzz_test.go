package hass

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"perch/must"
)

// FuzzEvent checks that invalid events cause no panic, and that errors do not contain the token.
func FuzzEvent(f *testing.F) {
	for _, s := range []string{
		`{"type":"run-start","data":{"runner_data":{"stt_binary_handler_id":7}}}`,
		`{"type":"stt-end","data":{"stt_output":{"text":"Hello."}}}`,
		`{"type":"intent-start","data":{"conversation_id":null}}`,
		`{"type":"intent-progress","data":{"chat_log_delta":{"role":"assistant","tool_calls":[{"id":"1","tool_name":"x"}]}}}`,
		`{"type":"intent-end","data":{"intent_output":{"response":{"speech":{"plain":{"speech":"x"}},"response_type":"error","data":{"code":"c"}},"conversation_id":"01"}}}`,
		`{"type":"error","data":{"code":"timeout","message":"` + canary + `"}}`,
		`{"type":"run-end"}`, `{"data":7}`, `[]`, ``,
	} {
		f.Add([]byte(s))
	}
	c, err := New(Options{URL: "http://x:8123", Token: canary})
	must.Succeed(f, err)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return // a message that is not JSON ends the connection before event is called
		}
		run := &Run{conn: &Conn{client: c}}
		e, err := run.event(raw)
		if err != nil {
			if strings.Contains(err.Error(), canary) || !utf8.ValidString(err.Error()) || len(err.Error()) > 900 {
				t.Errorf("%q", err)
			}
			return
		}
		if _, there, err := e.Delta(); there && err != nil {
			t.Error("a delta and an error")
		}
		_, _ = e.Handler()
		_, _ = e.Transcript()
		_, _ = e.Reply()
		_ = e.Conversation()
	})
}

// FuzzQuote checks that Quote hides the token inside any text, also if the end of the token is cut
// off.
func FuzzQuote(f *testing.F) {
	f.Add("bad token ", " here", 100)
	f.Add(strings.Repeat(" ", 5000), "", 7)
	f.Add("Bearer ", "\x00\xff", 0)
	f.Fuzz(func(t *testing.T, before, after string, cut int) {
		const plain = "plain-token/of+letters~only"
		c, err := New(Options{URL: "http://x:8123", Token: plain})
		must.Succeed(t, err)
		if strings.Contains(before+after, plain[:8]) {
			return
		}
		text := before + plain + after
		text = text[:max(len(before), len(text)-max(0, cut%64))]
		if got := c.Quote(text); strings.Contains(got, plain[:8]) || len(got) > 200+3 || !utf8.ValidString(got) ||
			strings.ContainsAny(got, "\r\n\x00\u202e") {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
