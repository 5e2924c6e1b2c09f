package hooks

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/event"
	"perch/must"
)

// seen records the events of the bus as a skin shows them: the status of each tool call, and each
// change of the visible state.
type seen struct {
	state agent.State
	shown string
	notes []string
}

func (s *seen) handleEvent(e event.Envelope) {
	s.state = agent.Fold(s.state, e)
	if t, ok := e.Event.(event.ToolStatus); ok {
		s.notes = append(s.notes, strings.TrimSpace(fmt.Sprint("tool ", t.ID, " ", t.Name, " ", t.Status, " ", t.Detail)))
	}
	shown := string(s.state.At(e.At))
	if s.state.SubAgents > 0 {
		shown += fmt.Sprint(" ", s.state.SubAgents)
	}
	if shown != s.shown {
		s.shown = shown
		s.notes = append(s.notes, shown)
	}
}

// since returns the notes since its previous call.
func (s *seen) since() []string {
	synctest.Wait()
	notes := s.notes
	s.notes = nil
	return notes
}

// watch reads all events of the bus until the bus is closed.
func (h *harness) watch() *seen {
	s := &seen{shown: string(agent.Idle)}
	reader := h.bus.ReadFrom(1)
	h.wg.Go(func() { reader.Each(context.Background(), s.handleEvent) })
	return s
}

// TestToolCalls checks what a skin shows during recorded sessions. Each line of a file is the input of a hook.
func TestToolCalls(t *testing.T) {
	const id = "toolu_01Vq5xTfY3rmbN8cKJp2sA"
	for file, want := range map[string][]string{
		"claude-code.jsonl": {
			"",
			"thinking",
			"tool " + id + "aa Bash running npm test|working",
			"tool " + id + "aa Bash done npm test",
			"tool " + id + "ab Bash running git status --short",
			"tool " + id + "ab Bash done git status --short",
			"tool " + id + "ac Read running /home/ann/shop/missing.js",
			"error|tool " + id + "ac Read failed /home/ann/shop/missing.js",
			"tool " + id + "ad Agent running Find the price bug|working",
			"juggling 1",
			"tool " + id + "ae Grep running price",
			"tool " + id + "ae Grep done price",
			"working",
			"tool " + id + "ad Agent done Find the price bug",
			"",
			"attention",
			"idle",
		},
		"codex.jsonl": {
			"",
			"thinking",
			"tool call_p3Zk1 Bash running npm test|working",
			"tool call_p3Zk1 Bash done npm test",
			"tool call_p3Zk2 apply_patch running src/price.js, src/tax.js",
			"tool call_p3Zk2 apply_patch done src/price.js, src/tax.js",
			"tool call_p3Zk3 mcp__files__read running",
			"tool call_p3Zk3 mcp__files__read done",
			"attention",
			"idle",
		},
		"clawd-on-desk.jsonl": {
			"",
			"thinking",
			"working",
			"",
			"tool toolu_k2 Edit running",
			"tool toolu_k2 Edit done",
			"juggling 1",
			"juggling 2",
			"juggling 1",
			"working",
			"",
			"",
			"attention",
			"idle",
		},
	} {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + file)
			must.Succeed(t, err)
			bubble(t, func(t *testing.T, h *harness) {
				h.runs()
				skin := h.watch()
				lines := strings.Split(strings.TrimSpace(string(text)), "\n")
				if len(lines) != len(want) {
					t.Fatalf("%d lines, %d are wanted", len(lines), len(want))
				}
				for i, line := range lines {
					h.reports(t, line)
					if got := strings.Join(skin.since(), "|"); got != want[i] {
						t.Errorf("after line %d:\n%.200s\n got %q\nwant %q", i+1, line, got, want[i])
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// TestCallsWithoutNames checks calls without an ID, and reports without an event.
func TestCallsWithoutNames(t *testing.T) {
	for name, c := range map[string]struct{ reports, want []string }{
		"hooks that send no ids": {
			[]string{`{"hook_event_name":"PreToolUse","tool_name":"Bash"}`, `{"hook_event_name":"PreToolUse","tool_name":"Bash"}`,
				`{"hook_event_name":"PostToolUse","tool_name":"Bash"}`},
			[]string{"tool coding-1-call-1 Bash running", "working", "tool coding-1-call-2 Bash running", "tool coding-1-call-1 Bash done"},
		},
		"a state alone, with a tool": {
			[]string{`{"state":"working","tool_name":"Bash"}`, `{"state":"working","tool_name":"Bash"}`, `{"state":"working","tool_name":"Edit"}`,
				`{"state":"working"}`},
			[]string{"tool coding-1-call-1 Bash running", "working", "tool coding-1-call-1 Bash done", "tool coding-1-call-2 Edit running",
				"tool coding-1-call-2 Edit done"},
		},
		"work of no tool": {[]string{`{"state":"working"}`, `{"state":"sweeping","tool_name":"x"}`, `{"state":"carrying"}`}, []string{"working"}},
		"an end without a beginning": {[]string{`{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"x"}`},
			[]string{"working"}},
		"reported twice": {[]string{`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"x"}`,
			`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"x"}`}, []string{"tool x Bash running", "working"}},
		"refused, and the turn over": {
			[]string{`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"x"}`, `{"hook_event_name":"Stop"}`},
			[]string{"tool x Bash running", "working", "attention", "tool x Bash failed"},
		},
		"it waits for somebody about one": {
			[]string{`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"x"}`,
				`{"hook_event_name":"Notification","message":"Claude needs your permission to use Bash","notification_type":"permission_prompt"}`,
				`{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"x"}`},
			[]string{"tool x Bash running", "working", "notification", "tool x Bash done", "working"},
		},
	} {
		bubble(t, func(t *testing.T, h *harness) {
			h.runs()
			skin := h.watch()
			for _, body := range c.reports {
				h.reports(t, body)
			}
			if got := skin.since(); !slices.Equal(got, c.want) {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		})
	}
}

// TestLongCall checks that a call that takes longer than staleWork is reported as done at its end.
func TestLongCall(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.runs()
		skin := h.watch()
		h.reports(t, `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"x"}`)
		time.Sleep(8 * time.Minute)
		h.reports(t, `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"x"}`)
		if got, want := skin.since(), []string{"tool x Bash running", "working", "idle", "tool x Bash done", "working"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestManyCalls checks that the number of running calls of a session is bounded.
func TestManyCalls(t *testing.T) {
	tab := table{}
	for i := range 100 {
		tab = tab.fold(noon, report{agent: claude, session: "s", event: preToolUse, state: working, call: call{id: fmt.Sprint(i), name: "Read"}})
	}
	if calls := tab[key(claude, "s")].calls; len(calls) != maxCalls || calls[0].id != "68" {
		t.Errorf("%d calls, from %+v on", len(calls), calls[0])
	}
}

// TestDetail checks that the detail of a call is one short line without secrets.
func TestDetail(t *testing.T) {
	for _, c := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"npm test"}`, "npm test"},
		{"Bash", `{"command":"cat <<X\n  a\tb\nX"}`, "cat <<X a b X"},
		{"Bash", `{"command":"curl -H 'Authorization: Bearer abcdef' https://u:p@x"}`, "curl -H 'Authorization: Bearer ***' https://***@x"},
		{"Bash", `{"command":"echo \u202eabc\u0000"}`, "echo abc"},
		{"Bash", `{"command":"` + strings.Repeat("ab ", 500) + `"}`, strings.TrimSpace(strings.Repeat("ab ", 66)) + " ab"},
		{"Edit", `{"file_path":"/a/b.go","old_string":"x","new_string":"secret"}`, "/a/b.go"},
		{"WebFetch", `{"url":"https://u:p@example.org/x?key=1","prompt":"x"}`, "example.org"},
		{"Grep", `{"pattern":"price"}`, "price"},
		{"WebSearch", `{"query":"go 1.26"}`, "go 1.26"},
		{"Task", `{"description":"Find it","prompt":"long"}`, "Find it"},
		{"mcp__files__read", `{"command":"x","query":"y"}`, ""},
		{"apply_patch", `{"command":"*** Update File: a.js\n*** Add File: b.js\n"}`, "a.js, b.js"}, // without the patch itself, as `perch-tools hooks send` reports it
		{"WebFetch", `{"url":"https://example.org"}`, "example.org"},
		{"Bash", `{"command":7}`, ""},
		{"Bash", `[]`, ""},
		{"Bash", ``, ""},
	} {
		if got := detail(c.tool, []byte(c.input)); got != c.want {
			t.Errorf("%s %.40s: %q, want %q", c.tool, c.input, got, c.want)
		}
	}
}
