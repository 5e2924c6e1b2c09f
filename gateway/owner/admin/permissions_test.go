package admin_test

import (
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"perch/agent"
)

func TestPermissions(t *testing.T) {
	h := newAppliance(t)
	h.wants(t, http.MethodGet, "/api/v1/permissions", "", 200, "=[]")
	h.questions.open = []agent.Question{
		{ID: "q1", Text: "May I run make test?", Robot: robotA, Session: "s1", Asked: started, Until: started.Add(time.Minute)},
		{ID: "q2", Text: "May I write to the disk?", Robot: robotB, Session: "s2", Asked: started, Until: started.Add(time.Minute)},
	}
	want := `[{"id":"q1","text":"May I run make test?","robot":"a0b1c2d3e4f5","session":"s1","asked":"2026-07-27T12:00:00Z","until":"2026-07-27T12:01:00Z"},`
	h.wants(t, http.MethodGet, "/api/v1/permissions", "", 200, want)
	for _, c := range []struct{ id, body, reply string }{{"q1", `{"allow":true}`, "q1 true"}, {"q2", `{"allow":false,"more":1}`, "q2 false"}} {
		h.questions.replies = nil
		h.wants(t, http.MethodPost, "/api/v1/permissions/"+c.id, c.body, 200, `={"ok":true}`)
		if got := strings.Join(h.questions.replies, ";"); got != c.reply {
			t.Errorf("replied %q, want %q", got, c.reply)
		}
		h.wants(t, http.MethodPost, "/api/v1/permissions/"+c.id, c.body, 404, `{"error":{"code":"unknown_permission","message":"`)
	}
}

// TestUnclearPermissionReply checks that a body without a clear yes or no leaves the question waiting.
func TestUnclearPermissionReply(t *testing.T) {
	for _, c := range []struct {
		method, id, body string
		status           int
		answer           string
		replied          bool
	}{
		{"POST", "q1", `{}`, 400, `"bad_body","message":"allow is needed`, false},
		{"POST", "q1", `{"allow":null}`, 400, `"bad_body"`, false},
		{"POST", "q1", `{"allow":"true"}`, 400, `"bad_body"`, false},
		{"POST", "q1", `{"allow":1}`, 400, `"bad_body"`, false},
		{"POST", "q1", `{"allowed":true}`, 400, `"bad_body"`, false},
		{"POST", "q1", `{"allow":true}{"allow":false}`, 400, `"bad_body"`, false},
		{"POST", "q1", `{"allow":true`, 400, `"bad_body"`, false},
		{"POST", "q1", `true`, 400, `"bad_body"`, false},
		{"POST", "q1", `null`, 400, `"bad_body"`, false},
		{"POST", "q1", ``, 400, `"bad_body"`, false},
		{"POST", "q1", strings.Repeat(" ", 64<<10) + `{"allow":true}`, 413, `"body_too_large"`, false},
		{"POST", "q2", `{"allow":true}`, 404, `"unknown_permission"`, true},
		{"POST", "q2", `{}`, 400, `"bad_body"`, false},
		{"POST", strings.Repeat("x", 129), `{"allow":true}`, 404, `"unknown_permission"`, false},
		{"POST", "", `{"allow":true}`, 404, `"not_found"`, false},
		{"GET", "q1", ``, 405, `"wrong_method"`, false},
	} {
		h := newAppliance(t)
		h.questions.open = []agent.Question{{ID: "q1"}}
		status, body := h.ask(c.method, "/api/v1/permissions/"+c.id, c.body)
		if status != c.status || !strings.Contains(body, c.answer) || len(body) > 1000 || !strings.HasPrefix(body, `{"error":{"code":"`) {
			t.Errorf("%s %.20s %.40s: %d %.300s, want %d %s", c.method, c.id, c.body, status, body, c.status, c.answer)
		}
		if len(h.questions.replies) > 0 != c.replied || len(h.questions.open) != 1 {
			t.Errorf("%s %.20s %.40s: replied %q, open is %v", c.method, c.id, c.body, h.questions.replies, h.questions.open)
		}
	}
	h := newAppliance(t)
	h.questions.open, h.questions.err = []agent.Question{{ID: "q1"}}, errors.New("secret: /dev/mmcblk0")
	if status, body := h.ask("POST", "/api/v1/permissions/q1", `{"allow":true}`); status != 500 || strings.Contains(body, "secret") {
		t.Errorf("a failure: %d %s", status, body)
	}
}

// TestForgetAConversation checks that a conversation is deleted, by its name or by any spelling of the robot's ID.
func TestForgetAConversation(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name   string
		status int
		kept   []string
	}{
		{"a0b1c2d3e4f5", 200, []string{"skin/one"}},
		{"A0:B1:C2:D3:E4:F5", 200, []string{"skin/one"}},
		{"a0-b1-c2-d3-e4-f5", 200, []string{"skin/one"}},
		{"skin/one", 200, []string{"a0b1c2d3e4f5"}},
		{"Skin/One", 200, []string{"a0b1c2d3e4f5", "skin/one"}},
		{"nobody's", 200, []string{"a0b1c2d3e4f5", "skin/one"}},
		{"\x00\xff", 200, []string{"a0b1c2d3e4f5", "skin/one"}},
		{x(512), 200, []string{"a0b1c2d3e4f5", "skin/one"}},
		{x(513), 400, []string{"a0b1c2d3e4f5", "skin/one"}},
		{"", 400, []string{"a0b1c2d3e4f5", "skin/one"}},
	} {
		h := newAppliance(t)
		for _, name := range []string{string(robotA), "skin/one"} {
			h.mind.AddExchange(name, agent.Exchange{Heard: "hello", Said: "Hello."}, started)
		}
		want := `{"ok":true}`
		if c.status != 200 {
			want = `{"error":{"code":"bad_conversation","message":"a conversation is a robot's id or a name, of at most 512 bytes"}}`
		}
		for range 2 { // the second time, there is no such conversation
			h.wants(t, http.MethodDelete, "/api/v1/conversations/"+url.PathEscape(c.name), "", c.status, "="+want)
		}
		kept := map[string]bool{}
		for _, name := range c.kept {
			kept[name] = true
		}
		got := map[string]bool{}
		for name := range h.histories.Kept {
			got[name] = true
		}
		if !reflect.DeepEqual(got, kept) {
			t.Errorf("%.40q: kept is %v, want %v", c.name, got, kept)
		}
	}
	h := newAppliance(t)
	for method, path := range map[string]string{"GET": "/api/v1/conversations/x", "POST": "/api/v1/conversations/x"} {
		h.wants(t, method, path, "", 405, "")
	}
	h.wants(t, "DELETE", "/api/v1/conversations", "", 404, "")
}
