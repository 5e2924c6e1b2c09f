package openai_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/agent/openai"
	"perch/agent/thinker"
	"perch/agent/thinker/thinkertest"
	"perch/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options(url string) openai.Options { return openai.Options{URL: url, Model: "qwen3:4b"} }

func engine(t testing.TB, o openai.Options) *openai.Engine {
	t.Helper()
	e, err := openai.New(o)
	must.Succeed(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

func withTools() thinker.Prompt {
	p := thinkertest.Hello()
	p.Tools = []thinker.Tool{{Name: "get_weather", Description: "The weather.", Schema: json.RawMessage(`{"type":"object"}`)}}
	return p
}

// read has an engine read body as the response to a request.
func read(t testing.TB, native bool, body io.Reader) thinkertest.Received {
	t.Helper()
	o := options("http://pi.example/v1")
	if native {
		o.Dialect = openai.DialectOllama
	}
	o.Transport = thinkertest.RoundTrip(func(r *http.Request) (*http.Response, error) { return thinkertest.Streamed(r, body), nil })
	return thinkertest.Listen(engine(t, o), thinkertest.Hello())
}

func TestDialects(t *testing.T) {
	for name, want := range map[string]thinkertest.Received{
		"openai_text.sse": {Pieces: []string{"😊 It is", " 3.14 o'clock.\n"}, Stop: thinker.StopEnd},
		"openai_tools.sse": {Pieces: []string{
			`call get_weather{"city":"Köln"} call_DdmO9pD3xa9XTPNJ32zg2hcA`, `call get_time{} call_ABC`}, Stop: thinker.StopTools},
		"ollama_v1_tools.sse": {Pieces: []string{
			`call get_weather{"city":"Tokyo"} call_9p1x`, `call get_weather{"city":"Osaka"} call_1`}, Stop: thinker.StopTools},
		"ollama_native.ndjson": {Pieces: []string{"🤔 Let me", " see. ",
			`call get_weather{"city":"Toronto","format":"celsius"} call_1`, `call get_time{} call_k2`}, Stop: thinker.StopTools},
		"llamacpp.sse": {Pieces: []string{"<thi", "nk>secret</th", "ink>Hello a < b"}, Stop: thinker.StopLength},
		"localai.sse":  {Pieces: []string{"Good ", "day."}, Stop: thinker.StopEnd},
	} {
		t.Run(name, func(t *testing.T) {
			data, native := thinkertest.Record(t, name), strings.HasSuffix(name, "ndjson")
			if got := read(t, native, bytes.NewReader(data)); got.Err != "" || !slices.Equal(got.Pieces, want.Pieces) || got.Stop != want.Stop {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// TestServersQuirks tests deviations of servers that the recorded messages do not contain.
func TestServersQuirks(t *testing.T) {
	data := func(chunks ...string) string { return "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\n" }
	delta := func(d string) string { return `{"choices":[{"delta":` + d + `}]}` }
	for name, c := range map[string]struct {
		body  string
		text  string
		calls []string
		stop  thinker.Stop
	}{
		"not streamed although asked": {body: `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{}}`,
			text: "Hi", calls: []string{`f{"a":1} c1`}, stop: thinker.StopTools},
		"CR alone, a BOM, comments, other fields": {body: "\ufeff: hello\revent: x\rid: 1\rretry: 5\rdata:" + delta(`{"content":"a"}`) +
			"\r\rdata: [DONE]\r\r", text: "a", stop: thinker.StopEnd},
		"an event in two data lines": {body: "data: {\"choices\":\r\ndata: [{\"delta\":{\"content\":\"a\"}}]}\n\n", text: "a", stop: thinker.StopEnd},
		"calls without index or id": {body: data(
			delta(`{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":{"x":[1]}}}]}`)),
			calls: []string{`f{} call_1`, `g{"x":[1]} call_2`}, stop: thinker.StopTools},
		"two calls of one id": {body: data(
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}]}`)), calls: []string{`f{} a`, `g{} call_1`}, stop: thinker.StopTools},
		"one number, two ids": {body: data(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`),
			delta(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":1}"}}]}`)), calls: []string{`f{} a`, `f{"x":1} b`},
			stop: thinker.StopTools},
		"the name in each piece": {body: data(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}`),
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]}`)), calls: []string{`f{"x":1} a`},
			stop: thinker.StopTools},
		"calls without arguments, index or id": {body: data(delta(`{"tool_calls":[{"function":{"name":"f"}},{"function":{"name":"g"}}]}`)),
			calls: []string{`f{} call_1`, `g{} call_2`}, stop: thinker.StopTools},
		"arguments that are no JSON": {body: data(delta(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{x:"}}]}`)),
			calls: []string{`f{x: a`}, stop: thinker.StopTools},
		"arguments as JSON in a string": {body: data(delta(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"\"{\\\"x\\\":1}\""}}]}`)),
			calls: []string{`f{"x":1} a`}, stop: thinker.StopTools},
		"a call without a name": {body: data(delta(`{"content":"x","tool_calls":[{"id":"a","function":{"arguments":"{}"}}]}`)), text: "x",
			stop: thinker.StopEnd},
		"cut off within a call": {body: data(delta(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x"}}]}`),
			`{"choices":[{"delta":{},"finish_reason":"length"}]}`), stop: thinker.StopLength},
		"stop said, although there are calls": {body: data(delta(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`),
			`{"choices":[{"delta":{},"finish_reason":"stop"}]}`), calls: []string{`f{} a`}, stop: thinker.StopTools},
		"filtered": {body: data(delta(`{"content":"I"}`), `{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`), text: "I",
			stop: thinker.StopRefused},
		"a refusal": {body: data(delta(`{"refusal":"No."}`), `{"choices":[{"delta":{},"finish_reason":"stop"}]}`), stop: thinker.StopRefused},
		"other choices": {body: data(`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}]}`), text: "yes",
			stop: thinker.StopEnd},
		"nothing to say": {body: data(`{"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}`), stop: thinker.StopEnd},
		"too long for anybody": {body: data(delta(`{"content":"`+strings.Repeat("a", 1<<19)+`"}`), delta(`{"content":"`+strings.Repeat("b", 1<<19)+`"}`), delta(`{"content":"c"}`)),
			text: strings.Repeat("a", 1<<19) + strings.Repeat("b", 1<<19) + "c", stop: thinker.StopLength},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, false, iotest.HalfReader(strings.NewReader(c.body)))
			if got.Err != "" || got.Text != c.text || !slices.Equal(got.Called(), c.calls) || got.Stop != c.stop {
				t.Errorf("got %.300q", got)
			}
		})
	}
}

// TestThoughtsWithoutAnOpeningTag tests models whose template begins a thought in the prompt, so
// that the text contains only the end of the thought. Such a thought is not spoken if the model's
// name shows that it thinks. For other models it is spoken only the first time.
func TestThoughtsWithoutAnOpeningTag(t *testing.T) {
	delta := func(text string) string { return `data: {"choices":[{"delta":{"content":"` + text + `"}}]}` + "\n\n" }
	thought := delta("The user greets me. ") + delta("So do I.</th") + delta("ink>\\n\\nHi") + delta(" there.")
	plain := delta("Hi") + delta(" there.")
	cut := delta("The user greets") + `data: {"choices":[{"delta":{},"finish_reason":"length"}]}` + "\n\n"
	apart := `data: {"choices":[{"delta":{"reasoning_content":"Hm."}}]}` + "\n\n" + plain
	for name, c := range map[string]struct {
		model, url string
		bodies     []string
		spoken     []string
	}{
		"its name says that it thinks":   {model: "deepseek-r1-distill-qwen-7b", bodies: []string{thought, thought}, spoken: []string{"Hi there.", "Hi there."}},
		"it does not say so":             {model: "any", bodies: []string{thought, thought, plain}, spoken: []string{"The user greets me. So do I. Hi there.", "Hi there.", "Hi there."}},
		"it says so, and does not":       {model: "Qwen3-4B-Thinking", bodies: []string{plain, plain}, spoken: []string{"Hi there.", "Hi there."}},
		"the server keeps them apart":    {model: "qwq-32b", bodies: []string{apart}, spoken: []string{"Hi there."}},
		"Ollama keeps them apart":        {model: "deepseek-r1:8b", url: "http://pi.example:11434/v1", bodies: []string{plain}, spoken: []string{"Hi there."}},
		"an end too many":                {model: "any", bodies: []string{delta("<think>Hm.</think>So</think> be it."), plain}, spoken: []string{"So be it.", "Hi there."}},
		"both, and cut off in a thought": {model: "magistral-small", bodies: []string{cut, thought, cut}, spoken: []string{"I was cut off.", "Hi there.", "I was cut off."}},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(cmp.Or(c.url, "http://pi.example/v1"))
			o.Model = c.model
			at := 0
			o.Transport = thinkertest.RoundTrip(func(r *http.Request) (*http.Response, error) {
				at++
				return thinkertest.Streamed(r, strings.NewReader(c.bodies[at-1]+"data: [DONE]\n\n")), nil
			})
			brain := thinker.New(thinker.Options{Model: engine(t, o)})
			for i, want := range c.spoken {
				var spoken []string
				err := brain.Think(t.Context(), agent.Turn{Text: "Hello.", Now: time.Now()}, func(r agent.Reply) error {
					if say, is := r.(agent.Say); is {
						spoken = append(spoken, say.Text)
					}
					return nil
				})
				if got := strings.Join(spoken, " "); err != nil || got != want {
					t.Errorf("turn %d: %q, %v", i+1, got, err)
				}
			}
		})
	}
}

func TestInvalidMessages(t *testing.T) {
	for name, c := range map[string]struct {
		native bool
		body   string
		want   string
	}{
		"nothing":                   {body: "", want: "cut the connection"},
		"nothing but comments":      {body: ": ping\n\n: ping\n\n", want: "cut the connection"},
		"nothing but [DONE]":        {body: "data: [DONE]\n\n", want: "does not follow the protocol"},
		"a web page":                {body: "\n<!doctype html><title>Router</title>", want: "a web page"},
		"garbage":                   {body: "data: {{{\n\n", want: "does not follow the protocol"},
		"half a chunk":              {body: `data: {"choices":[{"del`, want: "does not follow the protocol"},
		"another JSON":              {body: `{"status":"ok"}`, want: "does not follow the protocol"},
		"an error in the stream":    {body: `data: {"error":{"message":"out of memory","code":500}}` + "\n\n", want: "out of memory"},
		"llama.cpp's error":         {body: `error: {"code":503,"message":"Loading model","type":"unavailable_error"}` + "\n\n", want: "still being loaded"},
		"a line without an end":     {body: "data: " + strings.Repeat("a", 2<<20), want: "longer than 1 MB"},
		"an event without an end":   {body: strings.Repeat("data: "+strings.Repeat("a", 1000)+"\n", 2000), want: "longer than 1 MB"},
		"a document without an end": {body: `{"a":"` + strings.Repeat("a", 2<<20), want: "longer than 1 MB"},
		"comments without an end":   {body: strings.Repeat(": ping\n", 3<<20), want: "larger than 16 MB"},
		"calls without an end": {body: "data: " + `{"choices":[{"delta":{"tool_calls":[` + strings.Repeat(
			`{"id":"","function":{"name":"f","arguments":"{}"}},`, 70) + `{}]}}]}` + "\n\n", want: "more than 64 tools"},
		"a line of Ollama without an end": {native: true, body: `{"a":"` + strings.Repeat("a", 2<<20), want: "longer than 1 MB"},
		"Ollama cut":                      {native: true, body: `{"message":{"content":"I"},"done":false}` + "\n", want: "cut the connection"},
		"Ollama's error":                  {native: true, body: `{"error":"llama runner process has terminated"}`, want: "llama runner process has terminated"},
		"no line of Ollama":               {native: true, body: `{"hello":"world"}`, want: "does not follow the protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, c.native, strings.NewReader(c.body))
			if !strings.Contains(got.Err, c.want) || !strings.HasPrefix(got.Err, agent.ErrAway.Error()) || got.Stop != "" {
				t.Errorf("got %.300q", got)
			}
		})
	}
}

func fuzz(f *testing.F, native bool, suffix string) {
	names, _ := filepath.Glob("testdata/*" + suffix)
	for _, name := range names {
		f.Add(thinkertest.Record(f, filepath.Base(name)))
	}
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"<think\"}}]}\r\n\r\ndata:[DONE]"))
	f.Add([]byte(`{"message":{"content":"x","tool_calls":[{"function":{"name":"f"}}]},"done":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		whole := read(t, native, bytes.NewReader(data))
		single := read(t, native, iotest.OneByteReader(bytes.NewReader(data)))
		if !reflect.DeepEqual(whole, single) {
			t.Errorf("whole %q\nsplit %q", whole, single)
		}
		if (whole.Err == "") == (whole.Stop == "") {
			t.Errorf("neither an end nor an error, or both: %q", whole)
		}
	})
}

func FuzzEvents(f *testing.F) { fuzz(f, false, ".sse") }
func FuzzNative(f *testing.F) { fuzz(f, true, ".ndjson") }
