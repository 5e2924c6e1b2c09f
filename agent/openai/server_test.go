package openai_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/agent/openai"
	"perch/agent/thinker"
	"perch/agent/thinker/thinkertest"
	"perch/device"
	"perch/must"
)

const ok = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"

// conversation returns a prompt with a picture, calls, and results of calls.
func conversation() thinker.Prompt {
	p := withTools()
	p.Messages = []thinker.Message{
		{Role: thinker.RoleUser, Text: "What is this?", Pictures: []device.Picture{{Type: "image/jpeg", Data: []byte("jpeg")}}},
		{Role: thinker.RoleAssistant, Calls: []thinker.ToolCall{{ID: "c1", Name: "get_weather", Arguments: json.RawMessage(`{"a":1}`)},
			{ID: "c2", Name: "f", Arguments: json.RawMessage(`{x`)}}},
		{Role: thinker.RoleTool, CallID: "c1", Text: "sunny"},
		{Role: thinker.RoleTool, CallID: "c2", Text: "no JSON", Failed: true},
	}
	return p
}

// TestRequest tests the whole request in the OpenAI dialect.
func TestRequest(t *testing.T) {
	s := thinkertest.Serve(t, func(w http.ResponseWriter, _ string, _ map[string]any) { io.WriteString(w, ok) })
	half := 0.5
	o := options(s.URL + "/v1/")
	o.Key, o.Vision, o.Temperature, o.MaxTokens, o.ReasoningEffort = thinkertest.Canary, true, &half, 300, "low"
	o.Extra = map[string]any{"top_p": 0.9, "temperature": 0.1}
	if got := thinkertest.Listen(engine(t, o), conversation()); got.Text != "Hi" {
		t.Fatal(got)
	}
	var want map[string]any
	must.Succeed(t, json.Unmarshal([]byte(`{"model":"qwen3:4b","stream":true,
		"temperature":0.1,"top_p":0.9,"max_tokens":300,"reasoning_effort":"low","tool_choice":"auto",
		"tools":[{"type":"function","function":{"name":"get_weather","description":"The weather.","parameters":{"type":"object"}}}],
		"messages":[{"role":"system","content":"Be short."},
		{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,anBlZw=="}}]},
		{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"get_weather","arguments":"{\"a\":1}"}},{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","content":"sunny","tool_call_id":"c1"},{"role":"tool","content":"The tool failed: no JSON","tool_call_id":"c2"}]}`), &want))
	got := s.Requests()[0]
	if got.Path != "POST /v1/chat/completions" || got.Key != "Bearer "+thinkertest.Canary || !reflect.DeepEqual(got.Body, want) {
		t.Errorf("%+v", got)
	}
}

func TestNativeRequest(t *testing.T) {
	s := thinkertest.Serve(t, func(w http.ResponseWriter, _ string, _ map[string]any) {
		io.WriteString(w, `{"message":{"content":"Hi"},"done":true,"done_reason":"stop"}`+"\n")
	})
	o := options(s.URL + "/v1")
	o.Dialect, o.Vision, o.NumCtx, o.KeepAlive, o.MaxTokens, o.ReasoningEffort = openai.DialectOllama, true, 8192, "-1", 300, "none"
	o.Extra = map[string]any{"options": map[string]any{"top_k": 5}}
	if got := thinkertest.Listen(engine(t, o), conversation()); got.Text != "Hi" || got.Stop != thinker.StopEnd {
		t.Fatal(got)
	}
	var want map[string]any
	must.Succeed(t, json.Unmarshal([]byte(`{"model":"qwen3:4b","stream":true,
		"keep_alive":-1,"think":false,"options":{"num_ctx":8192,"num_predict":300,"top_k":5},
		"tools":[{"type":"function","function":{"name":"get_weather","description":"The weather.","parameters":{"type":"object"}}}],
		"messages":[{"role":"system","content":"Be short."},
		{"role":"user","content":"What is this?","images":["anBlZw=="]},
		{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":{"name":"get_weather","arguments":{"a":1}}},{"id":"c2","function":{"name":"f","arguments":{}}}]},
		{"role":"tool","content":"sunny","tool_name":"get_weather","tool_call_id":"c1"},{"role":"tool","content":"The tool failed: no JSON","tool_name":"f","tool_call_id":"c2"}]}`), &want))
	if got := s.Requests()[0]; got.Path != "POST /api/chat" || !reflect.DeepEqual(got.Body, want) {
		t.Errorf("%+v", got)
	}
}

// TestSettingsOfACharacter tests that a character's temperature replaces the configured one, and that
// its number of tokens is limited by the configured number. A model that rejects a temperature gets
// none.
func TestSettingsOfACharacter(t *testing.T) {
	s := thinkertest.Serve(t, func(w http.ResponseWriter, path string, asked map[string]any) {
		_, hot := asked["temperature"]
		switch {
		case strings.HasSuffix(path, "/api/chat"):
			io.WriteString(w, `{"message":{"content":"Hi"},"done":true,"done_reason":"stop"}`+"\n")
		case hot && asked["model"] == "cold":
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":{"message":"Unsupported value: 'temperature' does not support 1.5 with this model."}}`)
		default:
			io.WriteString(w, ok)
		}
	})
	half, much := 0.5, 1.5
	own := agent.BrainOptions{Model: "another", Temperature: &much, MaxTokens: 100}
	for name, c := range map[string]struct {
		model, dialect string
		brain          agent.BrainOptions
		temperature    any
		tokens         float64
	}{
		"none of its own": {brain: agent.BrainOptions{}, temperature: 0.5, tokens: 300},
		"its own":         {brain: own, temperature: 1.5, tokens: 100},
		"too many tokens": {brain: agent.BrainOptions{MaxTokens: 400}, temperature: 0.5, tokens: 300},
		"of Ollama":       {dialect: openai.DialectOllama, brain: own, temperature: 1.5, tokens: 100},
		"a model without": {model: "cold", brain: own, tokens: 100},
	} {
		o := options(s.URL + "/v1/")
		o.Temperature, o.MaxTokens, o.Dialect, o.Model = &half, 300, c.dialect, cmp.Or(c.model, o.Model)
		p := conversation()
		p.Brain = c.brain
		if got := thinkertest.Listen(engine(t, o), p); got.Text != "Hi" {
			t.Fatal(name, got)
		}
		all := s.Requests()
		got := all[len(all)-1].Body
		tokens := got["max_tokens"]
		if inner, native := got["options"].(map[string]any); native {
			got["temperature"], tokens = inner["temperature"], inner["num_predict"]
		}
		if got["model"] != o.Model || got["temperature"] != c.temperature || tokens != c.tokens {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestErrors tests that each refusal leads to a one-line error without the key.
func TestErrors(t *testing.T) {
	const models = `{"object":"list","data":[{"id":"llama3.2:3b","owned_by":"library"},{"id":"gemma3:4b"}]}`
	for name, c := range map[string]struct {
		status int
		body   string
		ours   bool // whether the error does not wrap agent.ErrAway
		want   string
	}{
		"no model": {status: 404, body: `{"error":{"message":"model \"qwen3:4b\" not found, try pulling it first","type":"not_found_error"}}`,
			want: "the server does not have the model qwen3:4b; GET URL/v1/models lists: llama3.2:3b, gemma3:4b"},
		"no model, 400":  {status: 400, body: `{"error":{"message":"The model does not exist"}}`, want: "the server does not have the model qwen3:4b; GET"},
		"too many, bare": {status: 429, body: `{"error":{"message":"You exceeded your current quota"}}`, want: "You exceeded your current quota"},
		"loading":        {status: 503, body: `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, want: "still being loaded"},
		"a long story":   {status: 422, ours: true, body: strings.Repeat("é", 5000), want: "…"},
	} {
		t.Run(name, func(t *testing.T) {
			s := thinkertest.Serve(t, func(w http.ResponseWriter, path string, _ map[string]any) {
				if path == "GET /v1/models" {
					io.WriteString(w, models)
					return
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			o := options(s.URL + "/v1")
			o.Key = thinkertest.Canary
			_, err := engine(t, o).Continue(t.Context(), thinkertest.Hello(), func(thinker.Piece) error { return nil })
			if err == nil || errors.Is(err, agent.ErrAway) == c.ours || !strings.Contains(err.Error(), strings.ReplaceAll(c.want, "URL", s.URL)) {
				t.Error(err)
			}
			if text := fmt.Sprint(err); strings.Contains(text, "canary") || strings.Contains(text, "\n") || len(text) > 500 {
				t.Error("a key, or more than a sentence:", text)
			}
		})
	}
}

// TestRejectedOptionsAreLeftOut tests that an option that the server rejects is omitted in the same
// turn and from then on, and that this is logged once.
func TestRejectedOptionsAreLeftOut(t *testing.T) {
	one := 1.0
	refusals := []struct{ field, body string }{
		{"tools", `{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools"}}`},
		{"temperature", `{"error":{"message":"Unsupported value: 'temperature' does not support 1 with this model."}}`},
		{"max_tokens",
			`{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}`},
		{"reasoning_effort", `{"error":{"message":"Unrecognized request argument supplied: reasoning_effort"}}`},
	}
	s := thinkertest.Serve(t, func(w http.ResponseWriter, path string, body map[string]any) {
		if path == "GET /models" {
			io.WriteString(w, `{"data":[]}`)
			return
		}
		for _, r := range refusals {
			if _, there := body[r.field]; there {
				w.WriteHeader(400)
				io.WriteString(w, r.body)
				return
			}
		}
		io.WriteString(w, ok)
	})
	var log bytes.Buffer
	o := options(s.URL)
	o.Temperature, o.MaxTokens, o.ReasoningEffort, o.Log = &one, 100, "low", slog.New(slog.NewTextHandler(&log, nil))
	e := engine(t, o)
	for range 2 {
		if got := thinkertest.Listen(e, withTools()); got.Text != "Hi" {
			t.Fatal(got)
		}
	}
	if n := len(s.Requests()); n != len(refusals)+2 {
		t.Errorf("%d requests", n)
	}
	if last := s.Requests()[len(refusals)+1].Body; last["max_completion_tokens"] != 100.0 || last["tool_choice"] != nil {
		t.Error(last)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != len(refusals) {
		t.Errorf("%d lines:\n%s", n, &log)
	}
	if err := e.Check(t.Context()); !errors.Is(err, openai.ErrNoTools) || errors.Is(err, agent.ErrAway) {
		t.Error(err)
	}
}

// TestRetryAfter tests that a request is repeated after a short Retry-After, within the same turn,
// and that a longer Retry-After leads to an error.
func TestRetryAfter(t *testing.T) {
	for name, c := range map[string]struct {
		after    []string // value of Retry-After in the response to each request
		status   int
		took     time.Duration
		requests int
		want     string // part of the error; "" if the turn succeeds
	}{
		"a second":               {after: []string{"1"}, status: 429, took: time.Second, requests: 2},
		"a second, overloaded":   {after: []string{"1"}, status: 503, took: time.Second, requests: 2},
		"two seconds":            {after: []string{"1", "1"}, status: 429, took: 2 * time.Second, requests: 3},
		"at once":                {after: []string{"0"}, status: 429, requests: 2},
		"again and again":        {after: []string{"1", "1", "1", "1"}, status: 429, took: 2 * time.Second, requests: 3, want: "has had too many requests"},
		"a minute":               {after: []string{"60"}, status: 429, requests: 1, want: "until 60 s from now"},
		"a date":                 {after: []string{"Sat, 21 Nov 2026 13:00:00 GMT"}, status: 429, requests: 1, want: "until Sat, 21 Nov 2026"},
		"less than no time":      {after: []string{"-1"}, status: 429, requests: 1, want: "until -1"},
		"no number":              {after: []string{"NaN"}, status: 429, requests: 1, want: "until NaN"},
		"not what a refusal is":  {after: []string{"1"}, status: 402, requests: 1, want: "no credit left"},
		"longer than may be had": {after: []string{"1", "1"}, status: 400, requests: 1, want: "refuses the request"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				o := options("http://pi.example/v1")
				o.Transport = thinkertest.RoundTrip(func(r *http.Request) (*http.Response, error) {
					requests++
					answer := thinkertest.Streamed(r, strings.NewReader(ok))
					if len(c.after) >= requests {
						answer.StatusCode = c.status
						answer.Header.Set("Retry-After", c.after[requests-1])
					}
					return answer, nil
				})
				start := time.Now()
				_, err := engine(t, o).Continue(t.Context(), thinkertest.Hello(), func(thinker.Piece) error { return nil })
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Error(err)
				}
				if took := time.Since(start); took != c.took || requests != c.requests {
					t.Errorf("%d requests in %v", requests, took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // the end of the context ends the pause
		o := options("http://pi.example/v1")
		o.Transport = thinkertest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"2"}}, Body: http.NoBody, Request: r}, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := engine(t, o).Continue(ctx, thinkertest.Hello(), func(thinker.Piece) error { return nil }); err != context.DeadlineExceeded ||
			time.Since(start) != time.Second {
			t.Error(err, time.Since(start))
		}
	})
}

func TestNoRetryAfterText(t *testing.T) {
	s := thinkertest.Serve(t, func(w http.ResponseWriter, _ string, _ map[string]any) {
		io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"I\"}}]}\n\ndata: {\"error\":{\"message\":\"does not support tools\"}}\n\n")
	})
	if got := thinkertest.Listen(engine(t, options(s.URL)), withTools()); got.Text != "I" || got.Err == "" || len(s.Requests()) != 1 {
		t.Error(got)
	}
}
