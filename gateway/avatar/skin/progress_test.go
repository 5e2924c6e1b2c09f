package skin

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"perch/agent"
	"perch/event"
)

// ofRun matches the parts that differ between two streams of the same reply.
var ofRun = regexp.MustCompile(`"id":"chatcmpl-[A-Z0-9]+"|"created":\d+`)

// plainStream is the stream for the replies of said, without the status of tools.
const plainStream = `data: {ID,"object":"chat.completion.chunk",AT,"model":"perch","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

data: {ID,"object":"chat.completion.chunk",AT,"model":"perch","choices":[{"index":0,"delta":{"content":"[happy] Build is green."},"finish_reason":null}]}

data: {ID,"object":"chat.completion.chunk",AT,"model":"perch","choices":[{"index":0,"delta":{"content":" [love] [anim:wave] Well done."},"finish_reason":null}]}

data: {ID,"object":"chat.completion.chunk",AT,"model":"perch","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`

// TestToolProgress tests that the status of tools is sent in the format of Hermes Agent if the header requests
// it, and that all other streams are unchanged.
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
