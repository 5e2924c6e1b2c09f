package hooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/language"
	"perch/limit"
	"perch/must"
	"perch/waittest"
)

// TestFound checks that hooks that look for clawd-on-desk accept this server.
func TestFound(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	server := h.serve(t)
	status, header, body := ask(t, server, "GET", "/state", "")
	u, err := url.Parse(server.URL)
	must.Succeed(t, err)
	if want := `{"ok":true,"app":"clawd-on-desk","port":` + u.Port() + `}`; status != 200 || body != want ||
		header.Get("X-Clawd-Server") != "clawd-on-desk" {
		t.Errorf("%d %v %s", status, header, body)
	}
}

// TestReports checks the responses to valid and invalid reports.
func TestReports(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	server := h.serve(t)
	for _, c := range []struct {
		body   string
		status int
		answer string
	}{
		{`{"state":"working","session_id":"s1","event":"PreToolUse","agent_id":"claude-code","tool_name":"Bash","pid_chain":[1,2],"editor":"code"}`,
			200, "ok"},
		{`{"state":"thinking"}`, 200, "ok"},
		{`{"state":"yawning"}`, 200, "ok"},
		{`{"state":"mini-happy","svg":"x.svg"}`, 200, "ok"},
		{`{"state":"working","headless":true,"session_id":"h"}`, 200, "ok"},
		{`{"hook_event_name":"UserPromptSubmit","session_id":"s2","prompt":"x","agent_id":"sub"}`, 204, ""},
		{`{"hook_event_name":"PostToolUse","session_id":"s2","tool_response":"` + strings.Repeat("x", 1<<20) + `"}`, 204, ""},
		{`{"hook_event_name":"SomethingNew","session_id":"s2"}`, 204, ""},
		{`{"state":"mini-happy"}`, 400, "bad_body"},
		{`{"state":"dancing"}`, 400, "bad_body"},
		{`{"state":""}`, 400, "bad_body"},
		{`{}`, 400, "bad_body"},
		{`{"state":7}`, 400, "bad_body"},
		{`{"state":"idle"`, 400, "bad_body"},
		{`[]`, 400, "bad_body"},
		{``, 400, "bad_body"},
		{`{"state":"idle","x":"` + strings.Repeat("x", limit.Message) + `"}`, 413, "body_too_large"},
	} {
		status, header, body := ask(t, server, "POST", "/state", c.body)
		if status != c.status || !strings.Contains(body, c.answer) || c.answer == "" && body != "" || len(body) > 400 ||
			header.Get("X-Clawd-Server") == "" {
			t.Errorf("%.60s: %d %s, want %d %s", c.body, status, body, c.status, c.answer)
		}
	}
	for _, c := range []struct {
		header, value string
		status        int
	}{
		{"Content-Type", "text/plain", 415},
		{"Content-Type", "", 415},
		{"Content-Type", "application/json; charset=utf-8", 200},
		{"Origin", "http://evil.example", 403},
		{"X-Forwarded-For", "10.0.0.1", 403},
	} {
		if status, _, body := ask(t, server, "POST", "/state", `{"state":"idle"}`, c.header, c.value); status != c.status {
			t.Errorf("%s %q: %d %s", c.header, c.value, status, body)
		}
	}
	h.api.mu.Lock()
	defer h.api.mu.Unlock()
	if _, there := h.api.table[key(claude, "s2")]; !there || len(h.api.table) != 3 {
		t.Errorf("the table is %v", h.api.table)
	}
}

// TestPermissionOverHTTP checks that a permission waits and is listed, and that its response has the format that
// Claude Code expects.
func TestPermissionOverHTTP(t *testing.T) {
	h := newHarness(t, unspoken)
	defer h.close()
	server := h.serve(t)
	const body = `{"session_id":"s1","hook_event_name":"PermissionRequest","cwd":"/home/ann/perch","tool_name":"Bash",
		"tool_input":{"command":"make test","description":"x"},"permission_suggestions":[{"type":"toolAlwaysAllow","tool":"Bash"}]}`
	for allow, want := range map[bool]string{
		true:  `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`,
		false: `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"This was denied through Perch, by somebody who is not at the robot."}}}`,
	} {
		answered := make(chan string)
		go func() {
			_, _, text := ask(t, server, "POST", "/permission", body)
			answered <- text
		}()
		q := h.waits(t, 1)[0]
		if q.Text != "A coding session in perch asks: May I run a command: make test?" || q.Session != "coding-1" ||
			q.Until.Sub(q.Asked) != time.Minute {
			t.Errorf("asked is %+v", q)
		}
		if err := h.api.Reply(q.ID, allow); err != nil {
			t.Error(err)
		}
		if got := <-answered; got != want {
			t.Errorf("answered %s", got)
		}
		if err := h.api.Reply(q.ID, true); err != agent.ErrNoQuestion {
			t.Errorf("answered twice: %v", err)
		}
	}
	for _, left := range []string{
		`{"tool_name":"AskUserQuestion","hook_event_name":"PermissionRequest"}`, `{"hook_event_name":"PermissionRequest"}`,
		`{"hook_event_name":"PreToolUse","tool_name":"Bash"}`, `{"agent_id":"opencode","request":{}}`, `{}`,
	} {
		if status, _, text := ask(t, server, "POST", "/permission", left); status != 204 || text != "" {
			t.Errorf("%s: %d %s", left, status, text)
		}
	}
	for _, bad := range []string{``, `[]`, `{"tool_name":7}`} {
		if status, _, text := ask(t, server, "POST", "/permission", bad); status != 400 || !strings.Contains(text, "bad_body") {
			t.Errorf("%s: %d %s", bad, status, text)
		}
	}
	if status, _, _ := ask(t, server, "POST", "/permission", `{"x":"`+strings.Repeat("x", limit.Message)+`"}`); status != 413 {
		t.Errorf("too large: %d", status)
	}
}

// waits waits until n questions are open, and returns them.
func (h *harness) waits(t testing.TB, n int) []agent.Question {
	t.Helper()
	var open []agent.Question
	waittest.For(t, fmt.Sprintf("%d questions", n), func() bool { open = h.api.Questions(); return len(open) == n })
	return open
}

// TestClientGone checks that a question ends when the client that waits for its answer disconnects.
func TestClientGone(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	server := h.serve(t)
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/permission",
		strings.NewReader(`{"tool_name":"Bash","tool_input":{"command":"ls"}}`))
	must.Succeed(t, err)
	r.Header.Set("Content-Type", "application/json")
	gone := make(chan error)
	go func() {
		_, err := server.Client().Do(r)
		gone <- err
	}()
	q := h.waits(t, 1)[0]
	leave()
	if err := <-gone; err == nil {
		t.Error("it was answered")
	}
	h.waits(t, 0)
	if err := h.api.Reply(q.ID, true); err != agent.ErrNoQuestion {
		t.Errorf("answered all the same: %v", err)
	}
}

// FuzzReport checks that the fields of a decoded report are bounded, and that error messages are short.
func FuzzReport(f *testing.F) {
	for _, body := range []string{`{"state":"working","session_id":"s","tool_name":"Bash"}`,
		`{"hook_event_name":"PreToolUse","tool_name":"apply_patch","tool_use_id":"t","agent_id":"a","tool_input":{"command":"*** Add File: a\n"}}`,
		`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"curl -H 'Authorization: Bearer x'"}}`,
		`{"hook_event_name":"Stop"}`, `{"state":"mini-x"}`, `null`, "{\"session_id\":\"\xff\",\"state\":\"idle\"}"} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := parseReport("", body)
		if err != nil {
			if len(err.Error()) > 500 {
				t.Fatalf("refused with %d bytes", len(err.Error()))
			}
			return
		}
		if len(r.agent) > limit.Word || len(r.session) > limit.ID || len(r.call.name) > limit.Word || len(r.call.id) > limit.ID ||
			len(r.call.detail) > limit.Name || strings.ContainsAny(r.call.detail, "\n\x00\u202e") || r.agent == "" || r.session == "" ||
			r.state != "" && r.state.traits().priority < 0 {
			t.Fatalf("%+v", r)
		}
	})
}

// FuzzWish checks that a spoken question is one line of bounded length that ends with a question mark.
func FuzzWish(f *testing.F) {
	for _, body := range []string{`{"tool_name":"Bash","tool_input":{"command":"make"},"cwd":"/a/b"}`,
		`{"tool_name":"WebFetch","tool_input":{"url":"http://x/"}}`,
		`{"tool_name":"x","tool_input":7}`, `{"tool_name":"Bash","tool_input":{"command":"{where}"}}`} {
		f.Add([]byte(body))
	}
	words := new(language.Catalogue).In("en")
	f.Fuzz(func(t *testing.T, body []byte) {
		var w permissionRequest
		if json.Unmarshal(body, &w) != nil {
			return
		}
		w.Tool = line(w.Tool, limit.Word)
		if q := question(words, w); len(q) > 400 || strings.ContainsAny(q, "\n\r\t\x00") || !strings.HasSuffix(q, "?") {
			t.Fatalf("asked is %q", q)
		}
	})
}
