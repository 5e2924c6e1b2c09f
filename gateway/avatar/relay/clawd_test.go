package relay

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/must"
)

// fakeClawd is a fake of clawd-on-desk as in src/server.js and src/server-route-state.js since version
// 0.5.10.
type fakeClawd struct {
	httpFake
	silent    bool        // whether the agent is switched off in the program, which then ignores the agent
	decisions chan string // the user's answers to questions
}

func newFakeClawd(t testing.TB, address string) *fakeClawd {
	t.Helper()
	return startFakeClawd(t, listen(t, address))
}

func startFakeClawd(t testing.TB, l net.Listener) *fakeClawd {
	c := &fakeClawd{httpFake: httpFake{t: t}, decisions: make(chan string)}
	c.start(l, http.HandlerFunc(c.serve))
	return c
}

func (c *fakeClawd) serve(w http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.Host)
	switch {
	case host != "127.0.0.1" || r.Header["Origin"] != nil:
		w.WriteHeader(http.StatusForbidden)
		return
	case r.URL.Path == "/permission":
		body, _ := io.ReadAll(r.Body)
		c.add(string(body))
		select {
		case decision := <-c.decisions:
			w.Header().Set("x-clawd-server", "clawd-on-desk")
			fmt.Fprintf(w, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":%s}}`, decision)
		case <-r.Context().Done():
			c.add("the question is taken back")
		}
		return
	case r.URL.Path != "/state":
		w.WriteHeader(http.StatusNotFound)
		return
	case r.Method == http.MethodGet:
		w.Header().Set("x-clawd-server", "clawd-on-desk")
		fmt.Fprint(w, `{"ok":true,"app":"clawd-on-desk","port":23333}`)
		return
	case len(r.Header["Content-Type"]) != 1 || r.Header.Get("Content-Type") != "application/json":
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1025))
	var state struct {
		State string `json:"state"`
	}
	err := json.Unmarshal(body, &state)
	known := strings.Fields("idle thinking working juggling sweeping error attention notification carrying sleeping")
	switch {
	case len(body) > 1024:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case err != nil || !slices.Contains(known, state.State):
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, "unknown state")
	case c.silent:
		w.Header().Set("x-clawd-server", "clawd-on-desk")
		w.WriteHeader(http.StatusNoContent)
	default:
		c.add(string(body))
		w.Header().Set("x-clawd-server", "clawd-on-desk")
		fmt.Fprint(w, "ok")
	}
}

// TestClawd tests that the program shows a session without a robot.
func TestClawd(t *testing.T) {
	c := newFakeClawd(t, anywhere)
	h := newHarness(t, Target{Kind: "clawd", URL: c.URL})
	h.happens("", "code", event.ThinkingStarted{})
	want := `{"state":"thinking","session_id":"perch:code","event":"UserPromptSubmit","session_title":"Perch code"}`
	h.eventually(want, func() bool { return strings.Contains(c.all(), want) })
}

// TestClawdIsFound tests that the program is found by its runtime file, and again after it has changed its port.
func TestClawdIsFound(t *testing.T) {
	var free []net.Listener
	for port := clawdMinPort; port <= clawdMaxPort && len(free) < 2; port++ {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			free = append(free, l)
		}
	}
	if len(free) < 2 {
		for _, l := range free {
			_ = l.Close()
		}
		t.Skip("the ports of clawd-on-desk are taken on this machine")
	}
	h := newHarness(t, Target{Kind: "clawd"})
	left := func(l net.Listener) {
		text := fmt.Sprintf(`{"app":"clawd-on-desk","port":%d}`, l.Addr().(*net.TCPAddr).Port)
		must.Succeed(t, os.MkdirAll(filepath.Join(h.home, ".clawd"), 0o700))
		must.Succeed(t, os.WriteFile(filepath.Join(h.home, ".clawd", "runtime.json"), []byte(text), 0o600))
	}
	left(free[1])
	first := startFakeClawd(t, free[1])
	h.happens(robotA, "s", event.RobotOnline{}, event.ThinkingStarted{})
	h.eventually("it is told", func() bool { return strings.Contains(first.all(), "thinking") })
	first.stop()
	left(free[0])
	second := startFakeClawd(t, free[0])
	h.happens(robotA, "s", event.SpeakingStarted{})
	h.eventually("it is told at its other port", func() bool { return strings.Contains(second.all(), `"working"`) })
}

// TestClawdTrial tests that a trial includes a notification and a question, and ends the session.
func TestClawdTrial(t *testing.T) {
	c := newFakeClawd(t, anywhere)
	h := newConnected(t, Target{Kind: "clawd", URL: c.URL})
	must.Succeed(t, h.relays.RunTrial(t.Context(), "clawd", time.Millisecond, func(string) error { return nil }))
	told := c.all()
	if n := strings.Count(told, `"event":"Notification"`); n != 3 || !strings.Contains(told[strings.LastIndex(told, "\n"):], `"event":"SessionEnd"`) {
		t.Errorf("%d notifications are shown:\n%s", n, told)
	}
}

// TestClawdAnswers tests that the user can answer a question if the word "permission" is set, and that a
// question that was answered elsewhere is withdrawn.
func TestClawdAnswers(t *testing.T) {
	c := newFakeClawd(t, anywhere)
	h := newConnected(t, Target{Kind: "clawd", URL: c.URL, Words: map[string]string{"permission": "on"}})
	for id, decision := range map[string]string{"q1": `{"behavior":"allow"}`, "q2": `{"behavior":"deny"}`, "q3": `{"behavior":"deny","message":"auto-denied"}`} {
		h.happens(robotA, "s", event.ThinkingStarted{}, event.Asked{ID: id, Text: "May I open the window?"})
		select {
		case c.decisions <- decision:
		case <-time.After(time.Minute):
			t.Fatalf("%s is not asked", id)
		}
		want := fmt.Sprint(id, " ", strings.Contains(decision, "allow"))
		if id == "q3" {
			h.happens(robotA, "s", event.Answered{ID: id})
			continue
		}
		h.eventually(want, func() bool { return strings.Contains(h.answers(), want) })
		h.happens(robotA, "s", event.Answered{ID: id})
	}
	h.happens(robotA, "s", event.Asked{ID: "q4", Text: "May I shut it?"})
	want := `{"tool_name":"Perch","tool_input":{"question":"May I shut it?"},"session_id":"perch:a0b1c2d3e4f5"}`
	h.eventually(want, func() bool { return strings.Contains(c.all(), want) })
	h.happens(robotA, "s", event.Answered{ID: "q4"})
	h.eventually("it is taken back", func() bool { return strings.Contains(c.all(), "the question is taken back") })
	if got := h.answers(); strings.Contains(got, "q3") || strings.Contains(got, "q4") {
		t.Errorf("answered are %s", got)
	}
}

// TestClawdIgnores tests that the owner is warned if the program ignores the agent or refuses a state.
func TestClawdIgnores(t *testing.T) {
	c := newFakeClawd(t, "127.0.0.1:0")
	c.silent = true
	off := newHarness(t, Target{Kind: "clawd", URL: c.URL})
	off.happens(robotA, "s", event.RobotOnline{}, event.ThinkingStarted{})
	off.eventually("the note", func() bool { return strings.Contains(off.relays.List()[0].Note, "ignores this agent") })
	odd := newHarness(t, Target{Kind: "clawd", URL: c.URL, Words: map[string]string{"state.thinking": "pondering"}})
	odd.happens(robotA, "s", event.RobotOnline{}, event.ThinkingStarted{})
	odd.eventually("the note", func() bool {
		return strings.Contains(odd.relays.List()[0].Note, "unknown state") && odd.relays.List()[0].OK
	})
}

// TestOtherThanClawd tests that another program is not connected.
func TestOtherThanClawd(t *testing.T) {
	r := newReceiver(t, func(string) int { return http.StatusOK })
	r.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"ok":true}`) })
	h := newHarness(t, Target{Kind: "clawd", URL: r.URL})
	h.eventually("the note", func() bool { return strings.Contains(h.note(), "does not answer") })
}

func TestClawdStates(t *testing.T) {
	w := wordsOf(t, clawdKind(), map[string]string{"state.listening": "", "agent": "custom-perch-0123456789ab"})
	for _, c := range []struct {
		is, was agent.Shown
		want    string
	}{
		{agent.Idle, agent.Attention, "idle "}, {agent.Thinking, agent.Idle, "thinking UserPromptSubmit"},
		{agent.Working, agent.Thinking, "working PreToolUse"}, {agent.Juggling, agent.Working, "juggling SubagentStart"},
		{agent.Working, agent.Juggling, "working SubagentStop"}, {agent.Speaking, agent.Juggling, "working SubagentStop"},
		{agent.Speaking, agent.Thinking, "working PreToolUse"}, {agent.Attention, agent.Speaking, "attention Stop"},
		{agent.Notification, agent.Idle, "notification Notification"}, {agent.Failed, agent.Working, "error PostToolUseFailure"},
		{agent.Sleeping, agent.Idle, "sleeping SessionEnd"}, {agent.Listening, agent.Idle, ""},
	} {
		told, is := newClawdState(w, "r", feed.State{State: c.is}, c.was)
		if got := told.State + " " + told.Event; is != (c.want != "") || is && (got != c.want || told.Agent != "custom-perch-0123456789ab") {
			t.Errorf("%s after %s is told as %+v", c.is, c.was, told)
		}
	}
}
