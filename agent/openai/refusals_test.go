package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent/thinker"
	"perch/agent/thinker/thinkertest"
)

// script is an http.RoundTripper that plays a server: answer returns a status and a body for each request.
type script struct {
	answer   func(body map[string]any) (status int, answer string)
	requests []map[string]any
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	s.requests = append(s.requests, body)
	status, text := s.answer(body)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(text))}, nil
}

// toolNames returns the names of the tools in a request.
func toolNames(body map[string]any) string {
	var names []string
	tools, _ := body["tools"].([]any)
	for _, tool := range tools {
		names = append(names, tool.(map[string]any)["function"].(map[string]any)["name"].(string))
	}
	return strings.Join(names, " ")
}

func refuse(reason string) string {
	text, _ := json.Marshal(map[string]any{"error": map[string]any{"message": reason, "type": "invalid_request_error"}})
	return string(text)
}

const hi = `{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}`

// TestRefusals tests the requests after a refusal, in the same turn and in the next turn. A request is
// written as the names of its tools, and its reasoning_effort after a slash.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		refuses func(body map[string]any, n int) string // returns the reason to refuse the nth request, or ""
		status  int
		want    string // the requests of two turns
		warns   string // part of the warning in the log; "" if there is none
	}{
		"a call that does not match its schema": {func(_ map[string]any, n int) string {
			if n == 1 {
				return "tool call validation failed: parameters for tool T did not match schema: errors: [additionalProperties 'level' not allowed]"
			}
			return ""
		}, 400, "T X, T X, T X", ""},
		"a call that cannot be read": {func(_ map[string]any, n int) string {
			if n == 1 {
				return "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."
			}
			return ""
		}, 400, "T X, T X, T X", ""},
		"the schema of one tool": {func(body map[string]any, _ int) string {
			if strings.Contains(toolNames(body), "X") {
				return "Invalid schema for function 'X': array schema missing items."
			}
			return ""
		}, 400, "T X, T, T", "schema of the tool X"},
		"the schema of a tool by its place": {func(body map[string]any, _ int) string {
			if strings.Contains(toolNames(body), "X") {
				return "tools[1].function.parameters: `required` present but `properties` is missing"
			}
			return ""
		}, 400, "T X, T, T", "schema of the tool X"},
		"the schema of some tool": {func(body map[string]any, n int) string {
			if n == 1 {
				return "Invalid schema for a function: it must have properties."
			}
			return ""
		}, 400, "T X, , T X", "this turn continues without tools"},
		"tools with an effort that nobody has set": {func(body map[string]any, _ int) string {
			if body["tools"] != nil && body["reasoning_effort"] != "none" {
				return "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'."
			}
			return ""
		}, 400, "T X, T X/none, T X/none", "reasoning_effort none"},
		"tools": {func(body map[string]any, _ int) string {
			if body["tools"] != nil {
				return "gemma3:4b does not support tools"
			}
			return ""
		}, 400, "T X, , ", "cannot use tools"},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			s := &script{}
			s.answer = func(body map[string]any) (int, string) {
				n++
				if reason := c.refuses(body, n); reason != "" {
					return c.status, refuse(reason)
				}
				return 200, hi
			}
			var log bytes.Buffer
			o := options("http://pi.example/v1")
			o.Transport, o.Log = s, slog.New(slog.NewTextHandler(&log, nil))
			e := engine(t, o)
			p := thinkertest.Hello()
			p.Tools = []thinker.Tool{{Name: "T", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "X", Schema: json.RawMessage(`{"type":"object"}`)}}
			for range 2 {
				if got := thinkertest.Listen(e, p); got.Err != "" || got.Text != "Hi." {
					t.Errorf("%q", got)
				}
			}
			var asked []string
			for _, r := range s.requests {
				text := toolNames(r)
				if effort, is := r["reasoning_effort"].(string); is {
					text += "/" + effort
				}
				asked = append(asked, text)
			}
			if got := strings.Join(asked, ", "); got != c.want {
				t.Errorf("asked %q, want %q", got, c.want)
			}
			warnings := strings.Count(log.String(), "WARN")
			if c.warns == "" && warnings > 0 || c.warns != "" && (warnings != 1 || !strings.Contains(log.String(), c.warns)) {
				t.Errorf("the log has %s", log.String())
			}
		})
	}
}

// TestToolsAreOfferedAgain tests that tools are offered again five minutes after a refusal, and in each turn
// after the server has accepted them.
func TestToolsAreOfferedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuses := true
		s := &script{}
		s.answer = func(body map[string]any) (int, string) {
			if refuses && body["tools"] != nil {
				return 500, refuse("tools param requires --jinja flag")
			}
			return 200, hi
		}
		o := options("http://pi.example/v1")
		o.Transport = s
		e := engine(t, o)
		turn := func() string {
			before := len(s.requests)
			if got := thinkertest.Listen(e, withTools()); got.Err != "" || got.Text != "Hi." {
				t.Errorf("%q", got)
			}
			var asked []string
			for _, r := range s.requests[before:] {
				asked = append(asked, toolNames(r))
			}
			return strings.Join(asked, ", ")
		}
		steps := []struct {
			what string
			wait time.Duration
			want string
		}{
			{"refused", 0, "get_weather, "},
			{"not offered", time.Minute, ""},
			{"refused again", 5 * time.Minute, "get_weather, "},
			{"taken", 5 * time.Minute, "get_weather"},
			{"taken at once", 0, "get_weather"},
		}
		for i, step := range steps {
			time.Sleep(step.wait)
			refuses = i < 3
			if got := turn(); got != step.want {
				t.Errorf("%s: asked %q, want %q", step.what, got, step.want)
			}
			if limited := e.Limits() != nil; limited != (i < 3) {
				t.Errorf("%s: %v", step.what, e.Limits())
			}
		}
	})
}

// TestTooLong tests that the error for a prompt that is too long contains the numbers of tokens in the refusal.
func TestTooLong(t *testing.T) {
	for reason, want := range map[string][2]int{
		"request (1870 tokens) exceeds the available context size (1800 tokens), try increasing it":           {1870, 1800},
		"This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.": {5000, 4096},
	} {
		s := &script{answer: func(map[string]any) (int, string) { return 400, refuse(reason) }}
		o := options("http://pi.example/v1")
		o.Transport = s
		_, err := engine(t, o).Continue(t.Context(), withTools(), func(thinker.Piece) error { return nil })
		long, is := errors.AsType[*thinker.TooLongError](err)
		if !is || long.Asked != want[0] || long.Limit != want[1] || len(s.requests) != 1 {
			t.Errorf("%q: %+v, %d requests", reason, err, len(s.requests))
		}
	}
}

// TestOpaqueFieldsGoBack tests that the thoughts and signatures of a message are sent back unchanged with the
// results of its calls.
func TestOpaqueFieldsGoBack(t *testing.T) {
	const call = `{"id":"c1","type":"function","function":{"name":"get_weather","arguments":"{}"}%s}`
	for name, c := range map[string]struct{ delta, want string }{
		"Gemini": {`{"tool_calls":[` + strings.Replace(call, "%s", `,"extra_content":{"google":{"thought_signature":"sig+A=="}}`, 1) + `]}`,
			`"extra_content":{"google":{"thought_signature":"sig+A=="}}`},
		"DeepSeek": {`{"reasoning_content":"Hm, ","tool_calls":[` + strings.Replace(call, "%s", "", 1) + `]}`, `"reasoning_content":"Hm, so."`},
		"OpenRouter": {`{"reasoning":"Hm, ","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}],"tool_calls":[` + strings.Replace(call, "%s", "", 1) + `]}`,
			`"reasoning_details":[{"data":"x","type":"reasoning.encrypted"}]`},
	} {
		more := map[string]string{"DeepSeek": `{"reasoning_content":"so."}`}[name]
		stream := "data: {\"choices\":[{\"delta\":" + c.delta + "}]}\n\n"
		if more != "" {
			stream += "data: {\"choices\":[{\"delta\":" + more + "}]}\n\n"
		}
		s := &script{answer: func(map[string]any) (int, string) { return 200, stream + "data: [DONE]\n\n" }}
		o := options("http://pi.example/v1")
		o.Transport = s
		e := engine(t, o)
		m := thinker.Message{Role: thinker.RoleAssistant}
		_, err := e.Continue(t.Context(), withTools(), func(piece thinker.Piece) error {
			if piece.Call != nil {
				m.Calls = append(m.Calls, *piece.Call)
			}
			if piece.Text != "" {
				t.Errorf("%s: %q is text", name, piece.Text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		p := withTools()
		p.Messages = append(p.Messages, m, thinker.Message{Role: thinker.RoleTool, CallID: "c1", Text: "sunny"})
		_, err = e.Continue(t.Context(), p, func(thinker.Piece) error { return nil })
		sent, _ := json.Marshal(s.requests[1]["messages"])
		if err != nil || !strings.Contains(string(sent), c.want) {
			t.Errorf("%s: %s, %v", name, sent, err)
		}
	}
}
