package openai_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/openai"
	"perch/agent/thinker"
	"perch/agent/thinker/thinkertest"
	"perch/device"
	"perch/must"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		native, vision bool
		status         int
		body           string
		is             error // error that Check must wrap; nil if Check must succeed
		want           string
	}{
		"listed":               {status: 200, body: `{"data":[{"id":"qwen3:4b"}]}`},
		"not listed":           {status: 200, body: `{"data":[{"id":"a"},{"id":"b"}]}`, is: agent.ErrAway, want: "/v1/models lists: a, b"},
		"listed with a path":   {status: 200, body: `{"data":[{"id":"models/qwen3:4b"},{"id":"models/b"}]}`},
		"many":                 {status: 200, body: `{"data":[{"id":"x"}` + strings.Repeat(`,{"id":"y"}`, 20) + `]}`, is: agent.ErrAway, want: "y, y and 13 more"},
		"llama.cpp":            {status: 200, body: `{"data":[{"id":"/models/qwen.gguf","owned_by":"llamacpp"}]}`},
		"no list":              {status: 404},
		"an empty list":        {status: 200, body: `{"data":[]}`},
		"loading":              {status: 503, body: `{"error":{"message":"Loading model"}}`, is: agent.ErrAway, want: "still being loaded"},
		"wrong key":            {status: 401, is: agent.ErrAway, want: "brains[..].key"},
		"a web page":           {status: 200, body: "<html>", is: agent.ErrAway, want: "does not follow the protocol"},
		"Ollama":               {native: true, status: 200, body: `{"capabilities":["completion","tools"]}`},
		"an older Ollama":      {native: true, status: 200, body: `{"modelfile":""}`},
		"Ollama without tools": {native: true, status: 200, body: `{"capabilities":["completion"]}`, is: openai.ErrNoTools, want: "qwen3:4b"},
		"Ollama without eyes": {native: true, vision: true, status: 200, body: `{"capabilities":["completion","tools"]}`, is: agent.ErrBlind,
			want: "cannot see pictures"},
		"Ollama, not downloaded": {native: true, status: 404, body: `{"error":"model 'qwen3:4b' not found"}`, is: agent.ErrAway,
			want: "the server does not have the model qwen3:4b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := thinkertest.Serve(t, func(w http.ResponseWriter, _ string, _ map[string]any) {
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			o := options(s.URL + "/v1")
			o.Vision = c.vision
			if c.native {
				o.Dialect = openai.DialectOllama
			}
			err := engine(t, o).Check(t.Context())
			if !errors.Is(err, c.is) || c.is != nil && !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
			if c.is != agent.ErrAway && errors.Is(err, agent.ErrAway) {
				t.Error("it would work:", err)
			}
		})
	}
}

// TestWarm tests that Warm has Ollama load the model, and that it requests /health from other
// servers without the key.
func TestWarm(t *testing.T) {
	status := http.StatusOK
	s := thinkertest.Serve(t, func(w http.ResponseWriter, _ string, _ map[string]any) {
		w.WriteHeader(status)
		io.WriteString(w, `{"done":true,"done_reason":"load"}`)
	})
	o := options(s.URL + "/v1?api-version=1")
	o.Key = thinkertest.Canary
	must.Succeed(t, engine(t, o).Warm(t.Context()))
	o.Dialect, o.KeepAlive, o.NumCtx = openai.DialectOllama, "10m", 4096
	must.Succeed(t, engine(t, o).Warm(t.Context()))
	got := s.Requests()
	if got[0].Path != "GET /health" || got[0].Key != "" {
		t.Error(got[0])
	}
	if load := got[1]; load.Path != "POST /api/generate?api-version=1" || load.Body["keep_alive"] != "10m" || load.Body["prompt"] != nil ||
		load.Body["options"].(map[string]any)["num_ctx"] != 4096.0 {
		t.Error(got[1])
	}
	status = http.StatusServiceUnavailable
	o.Dialect, o.KeepAlive, o.NumCtx = "", "", 0
	if err := engine(t, o).Warm(t.Context()); !errors.Is(err, agent.ErrAway) {
		t.Error(err)
	}
}

func TestDescribeImage(t *testing.T) {
	look := agent.Look{Picture: device.Picture{Type: "image/png", Data: []byte("png")}, Language: "de", Now: time.Now()}
	status, body := 200, "data: {\"choices\":[{\"delta\":{\"content\":\" A cup. \"}}]}\n\ndata: [DONE]\n\n"
	s := thinkertest.Serve(t, func(w http.ResponseWriter, _ string, _ map[string]any) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
	o := options(s.URL)
	if _, err := engine(t, o).DescribeImage(t.Context(), look); err != agent.ErrBlind || len(s.Requests()) != 0 {
		t.Error(err)
	}
	o.Vision = true
	e := engine(t, o)
	if spoken, err := e.DescribeImage(t.Context(), look); err != nil || spoken != "A cup." {
		t.Error(spoken, err)
	}
	messages := s.Requests()[0].Body["messages"].([]any)
	if text := messages[0].(map[string]any)["content"].(string); !strings.Contains(text, "tag de.") {
		t.Error(text)
	}
	body = "data: {\"choices\":[{\"delta\":{\"content\":\"" + strings.Repeat("a", 5000) + "\"}}]}\n\n"
	if spoken, err := e.DescribeImage(t.Context(), look); err != nil || len(spoken) != 5000 {
		t.Error(len(spoken), err)
	}
	status, body = 500, `{"error":{"code":500,"message":"image input is not supported - hint: you may need to provide the mmproj"}}`
	if _, err := e.DescribeImage(t.Context(), look); !errors.Is(err, agent.ErrBlind) {
		t.Error(err)
	}
	status, body = 500, `{"error":"out of memory"}`
	if _, err := e.DescribeImage(t.Context(), look); !errors.Is(err, agent.ErrAway) || errors.Is(err, agent.ErrBlind) {
		t.Error(err)
	}
	look.Picture.Data = nil
	if _, err := e.DescribeImage(t.Context(), look); err == nil {
		t.Error("no picture was looked at")
	}
}

func TestInvalidOptions(t *testing.T) {
	hot := 3.0
	for want, o := range map[string]openai.Options{
		"url is missing":                {Model: "m"},
		"not the address of a server":   {URL: "192.168.1.9:11434", Model: "m"},
		"url holds a password":          {URL: "http://u:" + thinkertest.Canary + "@h/v1", Model: "m"},
		"model is missing":              {URL: "http://h/v1"},
		"temperature is 0 to 2":         {URL: "http://h/v1", Model: "m", Temperature: &hot},
		"not negative":                  {URL: "http://h/v1", Model: "m", NumCtx: -1},
		"dialect is openai or":          {URL: "http://h/v1", Model: "m", Dialect: "x"},
		"keep_alive must be a duration": {URL: "http://ollama/v1", Model: "m", KeepAlive: "long"},
		"belong to Ollama's own API":    {URL: "http://h/v1", Model: "m", NumCtx: 4096},
		`extra may not hold "tools"`:    {URL: "http://h/v1", Model: "m", Extra: map[string]any{"tools": nil}},
	} {
		if _, err := openai.New(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, url := range []string{"http://h:11434/v1", "http://ollama.lan/v1", "http://h:11434"} {
		if _, err := openai.New(openai.Options{URL: url, Model: "m", NumCtx: 4096, KeepAlive: "10m"}); err != nil {
			t.Error(url, err)
		}
	}
}

// TestUnlistedModelIsTried tests that Check requests a message from a model that the server does
// not list, as for routers and aliases.
func TestUnlistedModelIsTried(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   string // text of the error; "" if Check must succeed
	}{
		"it talks":     {status: 200, body: ok},
		"it does not":  {status: 404, body: `{"error":{"message":"model not found"}}`, want: "the server does not have the model qwen3:4b; GET"},
		"is forbidden": {status: 403, body: `{"error":{"message":"no such plan"}}`, want: "the server does not have the model qwen3:4b; GET"},
	} {
		t.Run(name, func(t *testing.T) {
			s := thinkertest.Serve(t, func(w http.ResponseWriter, path string, _ map[string]any) {
				if strings.HasPrefix(path, "GET") {
					io.WriteString(w, `{"data":[{"id":"auto"}]}`)
					return
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			err := engine(t, options(s.URL+"/v1")).Check(t.Context())
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), c.want)) {
				t.Error(err)
			}
			if asked := s.Requests(); len(asked) < 2 || asked[1].Path != "POST /v1/chat/completions" || asked[1].Body["tools"] != nil {
				t.Errorf("%+v", asked)
			}
		})
	}
}

// TestContextTokens tests the length of the context that different servers report.
func TestContextTokens(t *testing.T) {
	for name, c := range map[string]struct {
		dialect, path, body string
		want                int
	}{
		"llama.cpp":           {"", "GET /props", `{"default_generation_settings":{"n_ctx":1800},"total_slots":1}`, 1800},
		"LM Studio":           {"", "GET /api/v0/models", `{"data":[{"id":"other","loaded_context_length":1},{"id":"qwen3:4b","loaded_context_length":4096,"max_context_length":32768}]}`, 4096},
		"Ollama":              {openai.DialectOllama, "GET /api/ps", `{"models":[{"name":"qwen3:4b","context_length":4096}]}`, 4096},
		"a server of another": {"", "GET /other", `{}`, 0},
	} {
		s := thinkertest.Serve(t, func(w http.ResponseWriter, path string, _ map[string]any) {
			if path != c.path {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			io.WriteString(w, c.body)
		})
		o := options(s.URL + "/v1")
		o.Dialect = c.dialect
		if got := engine(t, o).ContextTokens(t.Context()); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestModelNameIsTrimmed tests that spaces around the configured name of the model are removed.
func TestModelNameIsTrimmed(t *testing.T) {
	m, err := openai.Driver().New(&openai.Options{URL: "http://127.0.0.1:1/v1", Model: "any "}, thinker.ModelSetup{})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.(*openai.Engine).Where(); got != "any at http://127.0.0.1:1/v1" {
		t.Errorf("%q", got)
	}
}
