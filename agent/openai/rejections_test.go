package openai_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"perch/agent"
	"perch/agent/openai"
	"perch/agent/thinker/thinkertest"
	"perch/must"
)

// TestModelsWithoutTools tests the refusals of tools by different servers. The request is repeated
// without tools, and later requests have none. This is logged once, and Check returns the server's
// message.
func TestModelsWithoutTools(t *testing.T) {
	for name, c := range map[string]struct {
		native bool
		status int
		body   string
		says   string // part of the error of Check
	}{
		"Ollama": {status: 400,
			body: `{"error":{"message":"registry.ollama.ai/library/gemma3:4b does not support tools","type":"api_error","param":null,"code":null}}`,
			says: "gemma3:4b does not support tools"},
		"Ollama, its own API": {native: true, status: 400,
			body: `{"error":"registry.ollama.ai/library/deepseek-r1:14b does not support tools"}`,
			says: "deepseek-r1:14b does not support tools"},
		"llama.cpp without --jinja": {status: 500,
			body: `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`,
			says: "requires --jinja flag"},
		"vLLM": {status: 400,
			body: `{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}}`,
			says: "--enable-auto-tool-choice"},
		"an older vLLM": {status: 400,
			body: `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}`,
			says: "--tool-call-parser"},
		"LM Studio": {status: 400,
			body: `{"error":"Error rendering prompt with jinja template: \"Cannot call something that is not a function: got UndefinedValue\".\n\nThis is usually an issue with the model's prompt template."}`,
			says: "rendering prompt with jinja template"},
		"LM Studio, in the stream": {status: 200,
			body: "event: error\ndata: {\"error\":{\"message\":\"Error rendering prompt with jinja template: \\\"Cannot call something\\\".\"}}\n\n",
			says: "rendering prompt with jinja template"},
		"OpenRouter": {status: 404,
			body: `{"error":{"message":"No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs","code":404}}`,
			says: "No endpoints found"},
	} {
		t.Run(name, func(t *testing.T) {
			s := thinkertest.Serve(t, func(w http.ResponseWriter, path string, body map[string]any) {
				switch {
				case strings.HasPrefix(path, "GET"):
					io.WriteString(w, `{"data":[]}`)
				case path == "POST /api/show":
					io.WriteString(w, `{}`)
				case body["tools"] != nil:
					w.WriteHeader(c.status)
					io.WriteString(w, c.body)
				case c.native:
					io.WriteString(w, `{"message":{"content":"Hi"},"done":true}`+"\n")
				default:
					io.WriteString(w, ok)
				}
			})
			var log bytes.Buffer
			o := options(s.URL + "/v1")
			o.Key, o.Log = thinkertest.Canary, slog.New(slog.NewTextHandler(&log, nil))
			o.Extra = map[string]any{"parallel_tool_calls": false}
			if c.native {
				o.Dialect = openai.DialectOllama
			}
			e := engine(t, o)
			if err := e.Check(t.Context()); err != nil {
				t.Error("before it is known:", err)
			}
			before := len(s.Requests())
			for range 2 {
				if got := thinkertest.Listen(e, withTools()); got.Text != "Hi" {
					t.Fatal(got)
				}
			}
			asked := s.Requests()[before:]
			if len(asked) != 3 || asked[2].Body["tools"] != nil || asked[2].Body["tool_choice"] != nil ||
				asked[2].Body["parallel_tool_calls"] != nil {
				t.Errorf("%+v", asked)
			}
			if n := strings.Count(log.String(), "the model cannot use tools"); n != 1 || strings.Contains(log.String(), "canary") {
				t.Errorf("logged %d times:\n%s", n, &log)
			}
			err := e.Check(t.Context())
			if !errors.Is(err, openai.ErrNoTools) || errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), c.says) {
				t.Error(err)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a sentence: %q", err)
			}
		})
	}
}

// TestWrongRejectionIsForgotten tests that tools are offered again in the next turn if the request
// without them was refused as well.
func TestWrongRejectionIsForgotten(t *testing.T) {
	broken := true
	s := thinkertest.Serve(t, func(w http.ResponseWriter, path string, body map[string]any) {
		switch {
		case path == "GET /models":
			io.WriteString(w, `{"data":[]}`)
		case broken:
			w.WriteHeader(400)
			io.WriteString(w, `{"error":"Error rendering prompt with jinja template: \"Conversation roles must alternate\"."}`)
		default:
			io.WriteString(w, ok)
		}
	})
	var log bytes.Buffer
	o := options(s.URL)
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	e := engine(t, o)
	got := thinkertest.Listen(e, withTools())
	if !strings.Contains(got.Err, "roles must alternate") || len(s.Requests()) != 2 || log.Len() != 0 {
		t.Error(got, len(s.Requests()), &log)
	}
	broken = false
	if got := thinkertest.Listen(e, withTools()); got.Text != "Hi" || s.Requests()[2].Body["tools"] == nil {
		t.Error(got)
	}
	must.Succeed(t, e.Check(t.Context()))
}

// TestExtra tests that Options.Extra cannot replace keys of the engine, and that later changes of
// the map have no effect.
func TestExtra(t *testing.T) {
	for want, extra := range map[string]map[string]any{
		`extra may not hold "messages"`:  {"messages": []any{}},
		`extra may not hold "stream"`:    {"stream": false},
		`extra may not hold "model"`:     {"model": "x"},
		"options in extra must be names": {"options": 5},
		"cannot be written as JSON":      {"f": func() {}},
	} {
		o := options("http://h/v1")
		o.Extra = extra
		if _, err := openai.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	s := thinkertest.Serve(t, func(w http.ResponseWriter, _ string, _ map[string]any) { io.WriteString(w, ok) })
	o := options(s.URL)
	o.Extra = map[string]any{"tool_choice": "required", "parallel_tool_calls": false, "top_k": 5}
	e := engine(t, o)
	o.Extra["stream"], o.Extra["messages"] = false, nil
	thinkertest.Listen(e, withTools())
	thinkertest.Listen(e, thinkertest.Hello())
	with, without := s.Requests()[0].Body, s.Requests()[1].Body
	if with["stream"] != true || with["messages"] == nil || with["tool_choice"] != "required" || with["parallel_tool_calls"] != false {
		t.Error(with)
	}
	delete(with, "tools")
	delete(with, "tool_choice")
	delete(with, "parallel_tool_calls")
	if !reflect.DeepEqual(with, without) {
		t.Error(without)
	}
}
