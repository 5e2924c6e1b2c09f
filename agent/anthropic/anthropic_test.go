package anthropic_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/agent/anthropic"
	"perch/agent/thinker"
	"perch/agent/thinker/thinkertest"
	"perch/device"
	"perch/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, answer func(w http.ResponseWriter, path string, body map[string]any)) *thinkertest.Server {
	t.Helper()
	return thinkertest.Serve(t, func(w http.ResponseWriter, path string, body map[string]any) {
		kind := "application/json"
		if path == "POST /v1/messages" {
			kind = "text/event-stream; charset=utf-8"
		}
		w.Header().Set("Content-Type", kind)
		answer(w, path, body)
	})
}

func options(url string) anthropic.Options {
	return anthropic.Options{URL: url, Key: thinkertest.Canary, Model: "claude-haiku-5-5"}
}

func engine(t testing.TB, o anthropic.Options) *anthropic.Engine {
	t.Helper()
	e, err := anthropic.New(o)
	must.Succeed(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

func withTools() thinker.Prompt {
	p := thinkertest.Hello()
	p.Tools = []thinker.Tool{{Name: "get_weather", Description: "The weather.",
		Schema: json.RawMessage(
			`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false,"anyOf":[]}`)}}
	return p
}

type received = thinkertest.Received

func read(t testing.TB, body io.Reader) received {
	t.Helper()
	o := options("http://proxy.example/anthropic/v1/")
	o.Transport = thinkertest.RoundTrip(func(r *http.Request) (*http.Response, error) { return thinkertest.Streamed(r, body), nil })
	got := thinkertest.Listen(engine(t, o), thinkertest.Hello())
	for i := range got.Calls {
		got.Calls[i].Origin = nil
	}
	return got
}

var toolCalls = []thinker.ToolCall{
	{ID: "toolu_01T1x1fJ34qAmk2tNTrN7Up6", Name: "get_weather", Arguments: json.RawMessage(`{"city": "Köln"}`)},
	{ID: "toolu_02", Name: "get_time", Arguments: json.RawMessage(`{}`)},
}

func TestMessages(t *testing.T) {
	text, tools := string(thinkertest.Record(t, "text.sse")), string(thinkertest.Record(t, "tools.sse"))
	for name, c := range map[string]struct {
		body string
		want received
	}{
		"text":       {text, received{Text: "😊 It is sunny. ", Stop: thinker.StopEnd}},
		"CRLF":       {strings.ReplaceAll(text, "\n", "\r\n"), received{Text: "😊 It is sunny. ", Stop: thinker.StopEnd}},
		"tools":      {tools, received{Text: "Let me look.", Calls: toolCalls, Stop: thinker.StopTools}},
		"max_tokens": {strings.Replace(text, "end_turn", "max_tokens", 1), received{Text: "😊 It is sunny. ", Stop: thinker.StopLength}},
		"the context full": {strings.Replace(text, "end_turn", "model_context_window_exceeded", 1),
			received{Text: "😊 It is sunny. ", Stop: thinker.StopLength}},
		"refusal": {strings.Replace(text, "end_turn", "refusal", 1), received{Text: "😊 It is sunny. ", Stop: thinker.StopRefused}},
		"cut off in calls": {strings.Replace(tools, `"stop_reason":"tool_use"`, `"stop_reason":"max_tokens"`, 1),
			received{Text: "Let me look.", Stop: thinker.StopLength}},
		"a new event": {"event: weather\ndata: {\"type\":\"weather\"}\n\n" + text, received{Text: "😊 It is sunny. ", Stop: thinker.StopEnd}},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, strings.NewReader(c.body))
			if got.Pieces = nil; !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// FuzzMessages tests that any response body leads to either an end or an error, and that the
// result does not depend on how the network splits the body.
func FuzzMessages(f *testing.F) {
	for _, name := range []string{"text.sse", "tools.sse"} {
		f.Add(thinkertest.Record(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		whole := read(t, bytes.NewReader(data))
		if (whole.Err == "") == (whole.Stop == "") {
			t.Errorf("neither an end nor an error, or both: %q", whole)
		}
		if single := read(t, iotest.OneByteReader(bytes.NewReader(data))); !reflect.DeepEqual(whole, single) {
			t.Errorf("whole %q\nsplit %q", whole, single)
		}
	})
}

// TestSettingsOfACharacter tests that a character's temperature replaces the configured one, up to
// the maximum of the API, and that its number of tokens is limited by the configured number.
func TestSettingsOfACharacter(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ string, _ map[string]any) { w.Write(thinkertest.Record(t, "text.sse")) })
	half, little, much := 0.5, 0.2, 1.5
	for _, c := range []struct {
		brain               agent.BrainOptions
		temperature, tokens float64
	}{
		{agent.BrainOptions{}, 0.5, 4096},
		{agent.BrainOptions{Model: "another", Temperature: &little, MaxTokens: 100}, 0.2, 100},
		{agent.BrainOptions{Temperature: &much, MaxTokens: 5000}, 1, 4096},
	} {
		o := options(s.URL)
		o.Temperature = &half
		p := withTools()
		p.Brain = c.brain
		if got := thinkertest.Listen(engine(t, o), p); got.Err != "" {
			t.Fatal(got)
		}
		all := s.Requests()
		if got := all[len(all)-1].Body; got["model"] != o.Model || got["temperature"] != c.temperature || got["max_tokens"] != c.tokens {
			t.Errorf("%+v: %v", c.brain, got)
		}
	}
}

func TestRequest(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "of-the-environment") // must not be used
	t.Setenv("ANTHROPIC_BASE_URL", "http://elsewhere.invalid")
	s := serve(t, func(w http.ResponseWriter, _ string, _ map[string]any) { w.Write(thinkertest.Record(t, "text.sse")) })
	half := 0.5
	o := options(s.URL + "/v1/")
	o.Vision, o.Temperature, o.Effort, o.Extra = true, &half, "low", map[string]any{"top_k": 5}
	p := withTools()
	p.Messages = []thinker.Message{
		{Role: thinker.RoleAssistant, Text: "Lost history."},
		{Role: thinker.RoleUser, Text: "What is this?", Pictures: []device.Picture{{Type: "image/jpeg", Data: []byte("jpeg")}}},
		{Role: thinker.RoleAssistant, Calls: []thinker.ToolCall{{ID: "c1", Name: "get_weather", Arguments: json.RawMessage(`{"a":1}`)},
			{ID: "c2", Name: "f", Arguments: json.RawMessage(`{x`)}}},
		{Role: thinker.RoleTool, CallID: "c1", Text: ""},
		{Role: thinker.RoleTool, CallID: "c2", Text: "no JSON", Failed: true},
	}
	if got := thinkertest.Listen(engine(t, o), p); got.Err != "" {
		t.Fatal(got)
	}
	var want map[string]any
	must.Succeed(t, json.Unmarshal([]byte(`{"model":"claude-haiku-5-5","stream":true,"max_tokens":4096,"temperature":0.5,"top_k":5,
		"output_config":{"effort":"low"},
		"system":[{"type":"text","text":"Be short.","cache_control":{"type":"ephemeral"}}],
		"tools":[{"name":"get_weather","description":"The weather.","cache_control":{"type":"ephemeral"},
			"input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}],
		"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"anBlZw=="}},{"type":"text","text":"What is this?"}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"get_weather","input":{"a":1}},{"type":"tool_use","id":"c2","name":"f","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":false,"content":[{"type":"text","text":"(nothing)"}]},
			{"type":"tool_result","tool_use_id":"c2","is_error":true,"content":[{"type":"text","text":"no JSON"}]}]}]}`), &want))
	got := s.Requests()[0]
	if got.Path != "POST /v1/messages" || got.Key != thinkertest.Canary || !reflect.DeepEqual(got.Body, want) {
		text, _ := json.Marshal(got.Body)
		t.Errorf("%s %s %s", got.Path, got.Key, text)
	}
}

// answered returns a prompt with the message m and the results of its two calls.
func answered(m received) thinker.Prompt {
	p := withTools()
	p.Messages = append(p.Messages,
		thinker.Message{Role: thinker.RoleAssistant, Text: m.Text, Calls: m.Calls},
		thinker.Message{Role: thinker.RoleTool, CallID: m.Calls[0].ID, Text: "sunny"},
		thinker.Message{Role: thinker.RoleTool, CallID: m.Calls[1].ID, Text: "noon"})
	return p
}

// TestThinkingIsSentBack tests that the next request repeats the thinking with its calls and the
// same tools, and that it omits thinking that the API has rejected.
func TestThinkingIsSentBack(t *testing.T) {
	refuse := false
	s := serve(t, func(w http.ResponseWriter, _ string, body map[string]any) {
		text, _ := json.Marshal(body["messages"])
		switch {
		case refuse && bytes.Contains(text, []byte("signature")):
			w.WriteHeader(400)
			io.WriteString(w,
				`{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `+
					"`signature` in `thinking`"+` block. The block is bound to a different conversation."}}`)
		case len(body["messages"].([]any)) == 1:
			w.Write(thinkertest.Record(t, "tools.sse"))
		default:
			w.Write(thinkertest.Record(t, "text.sse"))
		}
	})
	e := engine(t, options(s.URL))
	content := func(request int) string {
		text, _ := json.Marshal(s.Requests()[request].Body["messages"].([]any)[1].(map[string]any)["content"])
		return string(text)
	}
	rounds := answered(thinkertest.Listen(e, withTools()))
	thinkertest.Listen(e, rounds)
	const kept = `{"signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h","thinking":"Weather, then.","type":"thinking"}`
	if !strings.HasPrefix(content(1), "["+kept+`,{"text":"Let me look."`) {
		t.Error(content(1))
	}
	last := rounds
	last.Tools = nil // as in the last request of a turn
	thinkertest.Listen(e, last)
	body := s.Requests()[2].Body
	if !reflect.DeepEqual(body["tools"], s.Requests()[0].Body["tools"]) || !reflect.DeepEqual(body["tool_choice"], map[string]any{"type": "none"}) {
		t.Error(body["tools"], body["tool_choice"])
	}
	refuse = true
	if got := thinkertest.Listen(e, rounds); got.Err != "" || strings.Contains(content(4), "thinking") {
		t.Error(got, content(4))
	}
	// Without the thinking, the offered tools have only the names of the calls.
	thinkertest.Listen(e, last)
	if tools := s.Requests()[5].Body["tools"].([]any); len(tools) != 2 {
		t.Error(tools)
	}
}

// TestInvalidArgumentsAreSentBackEmpty tests that the next request contains an empty object in
// place of invalid arguments of a call, also in a message with thinking.
func TestInvalidArgumentsAreSentBackEmpty(t *testing.T) {
	broken := bytes.Replace(thinkertest.Record(t, "tools.sse"), []byte(`\"Köln\"}`), []byte(`\"Köl`), 1)
	s := serve(t, func(w http.ResponseWriter, _ string, body map[string]any) {
		if len(body["messages"].([]any)) == 1 {
			w.Write(broken)
			return
		}
		w.Write(thinkertest.Record(t, "text.sse"))
	})
	e := engine(t, options(s.URL))
	first := thinkertest.Listen(e, withTools())
	if first.Err != "" || len(first.Calls) != 2 || !bytes.Contains(broken, []byte(`\"Köl"`)) {
		t.Fatalf("%+v", first)
	}
	if got := thinkertest.Listen(e, answered(first)); got.Err != "" || got.Text == "" {
		t.Fatalf("%+v", got)
	}
	text, _ := json.Marshal(s.Requests()[1].Body["messages"].([]any)[1])
	if !bytes.Contains(text, []byte(`"input":{},"name":"get_weather"`)) || !bytes.Contains(text, []byte(`"thinking":"Weather, then."`)) {
		t.Errorf("%s", text)
	}
}
