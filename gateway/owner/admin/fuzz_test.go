package admin_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"perch/agent"
	"perch/device"
)

// refusal checks that a response is a short error of the API with status 400, 404 or 413.
func refusal(t *testing.T, status int, body string) {
	t.Helper()
	if status != 400 && status != 404 && status != 413 || !strings.HasPrefix(body, `{"error":{"code":"`) || len(body) > 1000 {
		t.Fatalf("answered %d %s", status, body)
	}
}

// FuzzNotification checks that an accepted notification has a text, is bounded and is stored, and that nothing is
// stored for a refused one.
func FuzzNotification(f *testing.F) {
	for _, body := range []string{
		`{"text":"tea"}`, `{"text":"tea","urgency":"high","speak":false,"id":"1","action_url":"http://x/","robot":"A0:B1:C2:D3:E4:F5"}`,
		`{"text":"tea","expires_at":"2999-07-27T12:00:00+02:00","session_id":"s1"}`, `{"text":"\u0000\ud800"}`, `{"text":7}`, `[]`, `null`, ``,
		`{"text":"x","expires_at":"0001-01-01T00:00:00Z"}`, `{"TEXT":"x","text":"y"}`, "{\"text\":\"\xff\"}",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h := newAppliance(t)
		h.adopts(t, robotA, "one")
		status, body := h.ask(http.MethodPost, "/api/v1/notifications", string(text))
		kept := h.notices.Open(time.Now())
		if status != http.StatusAccepted {
			refusal(t, status, body)
			if len(kept) > 0 {
				t.Fatalf("%d %s, but kept is %+v", status, body, kept)
			}
			return
		}
		if len(kept) != 1 {
			t.Fatalf("%s, but kept is %+v", body, kept)
		}
		n := kept[0]
		if n.Text == "" || len(n.Text) > 1000 || !utf8.ValidString(n.Text) || strings.ContainsFunc(n.Text, unicode.IsControl) || n.ID == "" ||
			len(n.ID) > 64 ||
			len(n.ActionURL) > 4000 || len(n.SessionID) > 100 || n.Robot != "" && n.Robot != robotA || !n.Expires.After(time.Now()) {
			t.Fatalf("kept is %+v", n)
		}
	})
}

// FuzzAlert checks that an alert that reaches the robot is bounded, valid UTF-8 and without control characters except
// newlines.
func FuzzAlert(f *testing.F) {
	for _, body := range []string{
		`{"message":"tea"}`, `{"status":"House","message":"two\nlines","emotion":"cloud_off"}`, `{"message":"\u0000"}`,
		`{"message":"x","emotion":"😊"}`,
		`{"status":7}`, `[]`, `null`, ``, "{\"message\":\"\xff\"}", `{"message":"\u2028"} trailing`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h := newAppliance(t)
		h.visit(t, robotA, "one")
		status, body := h.ask(http.MethodPost, "/api/v1/devices/a0b1c2d3e4f5/alert", string(text))
		if status != http.StatusAccepted {
			refusal(t, status, body)
			if len(h.talk.asked) > 0 {
				t.Fatalf("%d %s, but the robot is asked %q", status, body, h.talk.asked)
			}
			return
		}
		if len(h.talk.asked) != 1 {
			t.Fatalf("the robot is asked %q", h.talk.asked)
		}
		asked, found := strings.CutPrefix(h.talk.asked[0], "alert a0b1c2d3e4f5 ")
		if !found || len(asked) > 64+1000+32+2 || !utf8.ValidString(asked) ||
			strings.ContainsFunc(asked, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
			t.Fatalf("the robot is asked %q", asked)
		}
	})
}

// FuzzPermission checks that only valid JSON with a yes or no answers the question, and with that value.
func FuzzPermission(f *testing.F) {
	for _, body := range []string{
		`{"allow":true}`, `{"allow":false}`, `{"allow":null}`, `{"allow":"true"}`, `{"allow":1}`, `{"allow":true,"allow":false}`,
		`{"Allow":true}`, `{"allow":[true]}`, `{"allow":true} x`, `[true]`, `true`, `null`, ``, "{\"allow\xff\":true}",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h := newAppliance(t)
		h.questions.open = []agent.Question{{ID: "q1"}}
		status, body := h.ask(http.MethodPost, "/api/v1/permissions/q1", string(text))
		if status != http.StatusOK {
			refusal(t, status, body)
			if len(h.questions.replies) > 0 || len(h.questions.open) != 1 {
				t.Fatalf("%d %s, but the reply is %q", status, body, h.questions.replies)
			}
			return
		}
		if len(h.questions.replies) != 1 || len(h.questions.open) != 0 {
			t.Fatalf("the reply is %q", h.questions.replies)
		}
		_, said, _ := strings.Cut(h.questions.replies[0], " ")
		if !json.Valid(text) || !strings.Contains(string(text), said) {
			t.Fatalf("%q is a %s", text, said)
		}
	})
}

// FuzzConversation checks that a request for any name deletes the conversation of that name or robot, and no other.
func FuzzConversation(f *testing.F) {
	for _, name := range []string{"a0b1c2d3e4f5", "A0:B1:C2:D3:E4:F5", "skin/one", "/", "..", "a?b#c", "%2f", "\x00", "é", strings.Repeat("x", 513)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		h := newAppliance(t)
		kept := name
		if id, err := device.ParseID(name); err == nil {
			kept = string(id)
		}
		for _, name := range []string{kept, "another's"} {
			h.mind.AddExchange(name, agent.Exchange{Heard: "hello", Said: "Hello."}, started)
		}
		status, body := h.ask(http.MethodDelete, "/api/v1/conversations/"+url.PathEscape(name), "")
		_, there := h.histories.Kept[kept]
		_, other := h.histories.Kept["another's"]
		switch {
		case status == http.StatusOK && there, !other && kept != "another's":
			t.Fatalf("%q: %d, kept is %v", name, status, h.histories)
		case status != http.StatusOK:
			refusal(t, status, body)
			if name != "" && len(name) <= 512 {
				t.Fatalf("%q is refused: %s", name, body)
			}
		}
	})
}
