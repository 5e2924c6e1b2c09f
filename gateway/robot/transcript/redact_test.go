package transcript

import (
	"strings"
	"testing"
	"time"

	"perch/event"
)

// TestNoSecretIsRecorded checks that secrets are removed from JSON, from JSON inside strings, from URLs and
// from text that is not JSON.
func TestNoSecretIsRecorded(t *testing.T) {
	for _, text := range []string{
		`{"type":"x","token":"CANARY","session_id":"THESESSION"}`, `{"a":{"Api_Key":"CANARY\\bc"},"b":[{"wifi_password":["CANARY",{"x":"CANARY"}]}]}`,
		`{"text":"{\"ssid\":\"CA\\\"NARY\",\"n\":1}"}`, `{"url":"http://h:1/f.bin?r=CANARY"}`, `{"text":"there? http://h/?t=CANARY"}`, `{"text":" [{\"token\":\"CANARY\"}]"}`, `{"uuid":"CANARY"}`,
		`{"Authorization" : "Bearer CANARY"}`,
		`{"error":{"message":"bad "token" CANARY"}}`, `{"client_secret":{"a":"CANARY"}}`,
	} {
		got := redact("THESESSION", []byte(text))
		if strings.Contains(got, "CANARY") || strings.Contains(got, "NARY") || strings.Contains(got, "THESESSION") {
			t.Errorf("%s is recorded as %s", text, got)
		}
	}
	const plain = `{"session_id":"S","type":"tts","n":1.50,"text":"a < b & \"c\"","said":"See http://h/. Shall I? [Yes] or no.","tag":"[happy] [no]","list":[1,true,null,{}],"o":{}}`
	if got := redact("THESESSION", []byte(plain)); got != plain {
		t.Errorf("%s is recorded as %s", plain, got)
	}
}

// TestNoSecretOfAToolIsRecorded checks that secrets are removed from what engines return and call.
func TestNoSecretOfAToolIsRecorded(t *testing.T) {
	var lines []string
	var tap Tap
	tap.Attach(NewRecorder("THESESSION", time.Now(), func(e Entry) { lines = append(lines, e.Text) }))
	tap.Called("door.open", map[string]any{"api_key": "CANARY", "session_id": "THESESSION", "door": "front"})
	if len(lines) != 1 || lines[0] != `mind call {"arguments":{"api_key":"…","door":"front","session_id":"S"},"name":"door.open"}` {
		t.Errorf("recorded are %q", lines)
	}
}

// TestMoodsAreNotRecorded checks that moods, which are published several times a second, are left out.
func TestMoodsAreNotRecorded(t *testing.T) {
	var lines []string
	r := NewRecorder("s", time.Time{}, func(e Entry) { lines = append(lines, e.Text) })
	r.AddEvent(event.Envelope{Event: event.Mood{}})
	r.AddEvent(event.Envelope{Event: event.Fault{}})
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "fault ") {
		t.Errorf("recorded are %q", lines)
	}
}
