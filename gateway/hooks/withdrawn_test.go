package hooks

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device"
	"perch/must"
)

// its is the report of the call that needs the permission.
const its = `{"hook_event_name":"PreToolUse","session_id":"s1","tool_name":"Bash","tool_input":{"command":"make test"},"tool_use_id":"its"}`

// TestAnsweredInTheTerminal checks which reports withdraw a question: those that show that a person has answered
// in the dialog that Claude Code shows in its terminal.
func TestAnsweredInTheTerminal(t *testing.T) {
	const before = `{"hook_event_name":"PreToolUse","session_id":"s1","tool_name":"Grep","tool_use_id":"other"}`
	for body, over := range map[string]bool{
		`{"hook_event_name":"PostToolUse","session_id":"s1","tool_name":"Bash","tool_input":{"command":"make test"},"tool_use_id":"its"}`: true,
		`{"hook_event_name":"PostToolUseFailure","session_id":"s1","tool_name":"Bash","tool_use_id":"its","error":"x"}`:                   true,
		// the call was denied, and the agent has made another call instead
		`{"hook_event_name":"PostToolUse","session_id":"s1","tool_name":"Edit","tool_use_id":"next"}`:  true,
		`{"state":"working","event":"PostToolUse","session_id":"s1","agent_id":"claude-code"}`:         true,
		`{"hook_event_name":"Stop","session_id":"s1"}`:                                                 true,
		`{"hook_event_name":"Interrupt","session_id":"s1"}`:                                            true,
		`{"hook_event_name":"UserPromptSubmit","session_id":"s1"}`:                                     true,
		`{"hook_event_name":"SessionEnd","session_id":"s1"}`:                                           true,
		`{"hook_event_name":"PostToolUse","session_id":"s1","tool_name":"Grep","tool_use_id":"other"}`: false, // a parallel call
		// a call of a subagent
		`{"hook_event_name":"PostToolUse","session_id":"s1","tool_name":"Read","tool_use_id":"sub","agent_id":"a7c31f0d2b9e4f11","agent_type":"Explore"}`:   false,
		`{"hook_event_name":"PostToolUse","session_id":"s2","tool_name":"Bash","tool_use_id":"its"}`:                                                        false,
		`{"hook_event_name":"PreToolUse","session_id":"s1","tool_name":"Read","tool_use_id":"next"}`:                                                        false,
		`{"hook_event_name":"Notification","session_id":"s1","message":"Claude needs your permission to use Bash","notification_type":"permission_prompt"}`: false,
	} {
		bubble(t, func(t *testing.T, h *harness) {
			h.runs()
			h.reports(t, before)
			h.reports(t, its)
			answered := h.permitted(t.Context())
			synctest.Wait()
			if n := len(h.api.Questions()); n != 1 {
				t.Fatalf("%d questions", n)
			}
			time.Sleep(10 * time.Second)
			began := time.Now()
			h.reports(t, body)
			synctest.Wait()
			if n := len(h.api.Questions()); (n == 0) != over {
				t.Errorf("%s: %d questions wait", body, n)
			}
			if got := <-answered; got != "terminal" || (time.Since(began) == 0) != over {
				t.Errorf("%s: %s after %s", body, got, time.Since(began))
			}
		})
	}
}

// TestParallelCallsDoNotAnswer checks that the end of a call that began just after the question does not withdraw
// the question, because an agent may start several calls at once. The end of a later call does.
func TestParallelCallsDoNotAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.runs()
		h.reports(t, its)
		answered := h.permitted(t.Context())
		synctest.Wait()
		time.Sleep(50 * time.Millisecond)
		h.reports(t, `{"hook_event_name":"PreToolUse","session_id":"s1","tool_name":"Read","tool_use_id":"beside"}`)
		time.Sleep(50 * time.Millisecond)
		h.reports(t, `{"hook_event_name":"PostToolUse","session_id":"s1","tool_name":"Read","tool_use_id":"beside"}`)
		synctest.Wait()
		if n := len(h.api.Questions()); n != 1 {
			t.Errorf("after the parallel call %d questions wait", n)
		}
		// A person has denied the call in the terminal, and the agent makes another call.
		time.Sleep(10 * time.Second)
		h.reports(t, `{"hook_event_name":"PreToolUse","session_id":"s1","tool_name":"Read","tool_use_id":"next"}`)
		h.reports(t, `{"hook_event_name":"PostToolUse","session_id":"s1","tool_name":"Read","tool_use_id":"next"}`)
		synctest.Wait()
		if n := len(h.api.Questions()); n != 0 {
			t.Errorf("after the next call %d questions wait", n)
		}
		if got := <-answered; got != "terminal" {
			t.Error(got)
		}
	})
}

// TestNotificationOfAPermission checks that a notification about the waiting permission is not shown as another
// request, neither while the permission waits nor after the answer.
func TestNotificationOfAPermission(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.runs()
		h.reports(t, its)
		answered := h.permitted(t.Context())
		time.Sleep(6 * time.Second)
		skin := h.watch()
		skin.since()
		h.reports(t,
			`{"hook_event_name":"Notification","session_id":"s1","message":"Claude needs your permission to use Bash","notification_type":"permission_prompt"}`)
		must.Succeed(t, h.api.Reply(h.api.Questions()[0].ID, true))
		if got := <-answered; got != "allow" {
			t.Error(got)
		}
		if got := skin.since(); !slices.Equal(got, []string{"working"}) {
			t.Errorf("a skin sees %q", got)
		}
		asked := 0
		for _, e := range h.happened() {
			if strings.HasSuffix(e, " asked") {
				asked++
			}
		}
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
}

func TestDeniedCallIsOver(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.runs()
		h.robots.ask = answers("no")
		skin := h.watch()
		h.reports(t, its)
		if got := <-h.permitted(t.Context()); got != "deny" {
			t.Error(got)
		}
		if got, want := skin.since(), []string{"tool its Bash running make test", "working", "notification", "tool its Bash failed make test",
			"working"}; !slices.Equal(got, want) {
			t.Errorf("a skin sees %q, want %q", got, want)
		}
	})
}

// TestWhosePermissionsWait checks that permissions of Claude Code and Codex wait, each in its own session. For
// other agents the response is empty at once: OpenCode's plugin waits only a second.
func TestWhosePermissionsWait(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile("testdata/" + file)
		must.Succeed(t, err)
		return string(text)
	}
	for _, c := range []struct {
		path, body string
		held       bool
	}{
		{"/permission", read("permission-claude-code.json"), true},
		{"/permission?by=perch-tools", read("permission-claude-code.json"), true},
		{"/permission?agent=codex", read("permission-codex.json"), true},
		{"/permission", `{"agent_id":"codex","tool_name":"Bash","tool_input":{"command":"ls"}}`, true},
		{"/permission", `{"agent_id":"claude-code","tool_name":"Bash","tool_input":{"command":"ls"}}`, true},
		// the permission of a subagent
		{"/permission", `{"hook_event_name":"PermissionRequest","agent_id":"a7c31f0d2b9e4f11","tool_name":"Bash","tool_input":{"command":"ls"}}`,
			true},
		{"/permission", read("permission-opencode.json"), false},
		{"/permission?agent=opencode", read("permission-claude-code.json"), false},
		{"/permission", `{"agent_id":"codebuddy","tool_name":"Bash","tool_input":{"command":"ls"}}`, false},
	} {
		h := newHarness(t, unspoken, func(o *Options) { o.Hold = 10 * time.Millisecond })
		server := h.serve(t)
		status, _, _ := ask(t, server, "POST", c.path, c.body)
		h.close()
		asked := slices.ContainsFunc(h.happened(), func(e string) bool { return strings.HasSuffix(e, " asked") })
		if status != 204 || asked != c.held {
			t.Errorf("%s %.80s: %d, asked: %t", c.path, c.body, status, asked)
		}
	}
}

// TestCodexSession checks that reports and permissions of Codex belong to one session.
func TestCodexSession(t *testing.T) {
	h := newHarness(t, unspoken, func(o *Options) { o.Hold = 10 * time.Millisecond })
	server := h.serve(t)
	for _, path := range []string{"/state", "/permission"} {
		body := `{"session_id":"c1","hook_event_name":"UserPromptSubmit","turn_id":"t","model":"m"}`
		if path == "/permission" {
			body = `{"session_id":"c1","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"ls"}}`
		}
		if status, _, text := ask(t, server, "POST", path+"?agent=codex", body); status != 204 || text != "" {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	h.close()
	if s, known := h.api.table[key(codex, "c1")]; !known || s.agent != codex || len(h.api.table) != 1 {
		t.Errorf("the table is %v", h.api.table)
	}
}

// TestDenialSaysWhere checks that the message of a denial says whether it was given at a robot or elsewhere.
func TestDenialSaysWhere(t *testing.T) {
	for name, c := range map[string]struct {
		answer  agent.Answer
		message string
	}{
		"a voice":   {agent.Answer{Outcome: agent.AnswerGiven, Text: "no"}, "This was denied by the person at the robot."},
		"elsewhere": {agent.Answer{Outcome: agent.AnswerDenied}, "This was denied through Perch, by somebody who is not at the robot."},
	} {
		bubble(t, func(t *testing.T, h *harness) {
			h.robots.ask = func(_ context.Context, _ device.ID, _ agent.Question) (agent.Answer, error) { return c.answer, nil }
			a, err := h.api.permit(t.Context(), "", []byte(wants))
			if err != nil || a == nil || a.Output.Decision.Message != c.message {
				t.Errorf("%s: %+v, %v", name, a, err)
			}
		})
	}
}
