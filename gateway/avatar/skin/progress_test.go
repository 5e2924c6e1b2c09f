package skin

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"perch/agent"
	"perch/event"
	"perch/limit"
)

// ofRun is what differs between two streams of the same answer.
var ofRun = regexp.MustCompile(`"id":"chatcmpl-[A-Z0-9]+"|"created":\d+`)

// plainStream is the stream of said with tools in it, for who asks for nothing else.
const plainStream = `data: {ID,"object":"chat.completion.chunk",AT,"model":"perch","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

data: {ID,"object":"chat.completion.chunk",AT,"model":"perch","choices":[{"index":0,"delta":{"content":"[happy] Build is green."},"finish_reason":null}]}

data: {ID,"object":"chat.completion.chunk",AT,"model":"perch","choices":[{"index":0,"delta":{"content":" [love] [anim:wave] Well done."},"finish_reason":null}]}

data: {ID,"object":"chat.completion.chunk",AT,"model":"perch","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`

// TestToolProgress is in the stream of who asks for it, as Hermes Agent sends it, and in no
// other: that one stays byte for byte what it is without tools.
func TestToolProgress(t *testing.T) {
	h := newHarness(t)
	tool := func(id, name, status, detail string) agent.Reply {
		return agent.ToolStatus{ToolStatus: event.ToolStatus{ID: id, Name: name, Status: status, Detail: detail}}
	}
	h.brain.replies = append([]agent.Reply{
		tool("call-0", "unheard_of", event.ToolDone, ""),
		tool("call-1", "web_search", event.ToolRunning, "rain in Berlin"), tool("call-2", "look", event.ToolRunning, ""),
		tool("call-1", "web_search", event.ToolDone, "it rains"), tool("call-2", "look", event.ToolFailed, "no camera"),
	}, said()...)
	stream := func(header ...string) string {
		t.Helper()
		answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(`,"stream":true`), header...)
		if answer.StatusCode != http.StatusOK {
			t.Fatal(body)
		}
		return ofRun.ReplaceAllStringFunc(body, func(s string) string {
			if strings.HasPrefix(s, `"id"`) {
				return "ID"
			}
			return "AT"
		})
	}
	for _, header := range [][]string{nil, {progressHeader, "off"}, {progressHeader, "0"}, {progressHeader, ""}, {"X-Hermes-Session-Id", "1"}} {
		if got := stream(header...); got != plainStream {
			t.Errorf("%v:\n%s, want\n%s", header, got, plainStream)
		}
	}
	first, rest, _ := strings.Cut(plainStream, "\n\n")
	want := first + "\n\n" +
		`event: hermes.tool.progress
data: {"tool":"web_search","emoji":"🔧","label":"rain in Berlin","toolCallId":"call-1","status":"running"}

event: hermes.tool.progress
data: {"tool":"look","emoji":"🔧","label":"look","toolCallId":"call-2","status":"running"}

event: hermes.tool.progress
data: {"tool":"web_search","toolCallId":"call-1","status":"completed"}

event: hermes.tool.progress
data: {"tool":"look","toolCallId":"call-2","status":"completed"}

` + rest
	for _, value := range []string{"1", "on", " True "} {
		if got := stream(progressHeader, value); got != want {
			t.Errorf("%q:\n%s, want\n%s", value, got, want)
		}
	}
	if _, whole := h.ask(t, http.MethodPost, chatPath, chatOf(""), progressHeader, "1"); strings.Contains(whole, "hermes") {
		t.Errorf("an answer in one piece: %s", whole)
	}
}

// TestOtherDoorsKeepTheRules of a chat: what is empty, too long or of nobody is refused.
func TestOtherDoorsKeepTheRules(t *testing.T) {
	h := newHarness(t)
	h.brain.replies = said()
	take := func(agent.Reply) error { return nil }
	for name, c := range map[string]struct{ character, text, want string }{
		"empty": {"", " \x00\n", "empty"}, "long": {"", strings.Repeat("x", limit.Question+1), "more than"}, "nobody's": {"leo", "hello", "no model"},
	} {
		if err := h.server.Chat(t.Context(), "vtb_desk", c.character, c.text, take); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if turns := h.brain.turns(); len(turns) != 0 {
		t.Errorf("a refused text was thought about: %+v", turns)
	}
}
