package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"perch/agent/acp"
	"perch/agent/anthropic"
	openaibrain "perch/agent/openai"
	"perch/agent/thinker"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/firmware-tools/simrobot"
)

// TestFaultsOfBrains: the cause for which a brain cannot answer is in the log, in the doctor's report and at
// /ready, and the robot says that it cannot think. None of these contains a key.
func TestFaultsOfBrains(t *testing.T) {
	t.Parallel()
	const canary = "canary-key-0123456789"
	refuse := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(strings.ReplaceAll(body, "KEY", r.Header.Get("Authorization"))))
		}
	}
	models := func(then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/models" {
				_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"qwen3:4b"},{"id":"llama3"}]}`))
				return
			}
			then(w, r)
		}
	}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		path  string
		brain config.Engine
		want  string
	}{
		"a wrong key": {serve: refuse(401, `{"error":{"message":"Incorrect API key provided: KEY"}}`), path: "/v1",
			brain: appliancetest.OpenAI(openaibrain.Options{Model: "m", Key: canary}), want: "key"},
		"a wrong key in the address": {serve: refuse(401, `{"error":{"message":"unauthorized"}}`), path: "/v1?api_key=" + canary,
			brain: appliancetest.OpenAI(openaibrain.Options{Model: "m"}), want: "key"},
		"a wrong key at Anthropic": {serve: refuse(401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`),
			brain: appliancetest.Anthropic(anthropic.Options{Model: "m", Key: canary}), want: "key"},
		"a wrong URL": {serve: refuse(404, `{"detail":"Not Found"}`), path: "/api",
			brain: appliancetest.OpenAI(openaibrain.Options{Model: "m", Key: canary}), want: "there is no such API at"},
		"a model that is not there": {serve: models(refuse(404, `{"error":{"message":"model \"m\" not found, try pulling it first"}}`)), path: "/v1",
			brain: appliancetest.OpenAI(openaibrain.Options{Model: "m", Key: canary}), want: "lists: qwen3:4b, llama3"},
		"an agent that is not there": {brain: config.Engine{Kind: "acp", Options: &acp.Options{Command: []string{"no-such-agent"}}}, want: "no-such-agent is not installed"},
		"nothing that listens":       {brain: appliancetest.OpenAI(openaibrain.Options{URL: "http://127.0.0.1:9/v1", Model: "m", Key: canary}), want: "nothing listens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := appliancetest.NewPeers(t)
			configured := appliancetest.Config()
			p.Use(&configured)
			configured.BrainDeep = nil
			if c.serve != nil {
				server := httptest.NewServer(c.serve)
				defer server.Close()
				switch keys := c.brain.Options.(type) {
				case *thinker.BrainKeys[openaibrain.Options]:
					keys.Model.URL = server.URL + c.path
				case *thinker.BrainKeys[anthropic.Options]:
					keys.Model.URL = server.URL + c.path
				}
			}
			configured.Brains = []config.Engine{c.brain}
			h := open(t, configured, t.TempDir())
			r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")})
			if !r.HasShown("I cannot think right now. The command perch doctor says why.") {
				t.Errorf("the robot said %v", r.Stats().Turns)
			}
			_, ready := h.Request("GET", "/ready", "")
			note := h.Part("brain " + c.brain.Kind).Note
			if !strings.Contains(note, c.want) {
				t.Errorf("/ready says %q", note)
			}
			h.Expect(http.StatusServiceUnavailable, "", "GET", "/health", "")
			log := h.Logged.String()
			if strings.Count(log, "an engine does not work") != 1 || !strings.Contains(log, c.want) {
				t.Errorf("the log does not tell it, or not once:\n%s", log)
			}
			seen, told := bare(t, "doctor --config "+writtenConfig(t, configured)+" --data "+h.Data, exitFailed), ""
			for line := range strings.Lines(seen) {
				if strings.HasPrefix(line, "FAIL  brain") {
					told = line
				}
			}
			if !strings.Contains(told, c.want) {
				t.Errorf("the doctor says %q of\n%s", told, seen)
			}
			if strings.Contains(log+ready+seen+strings.Join(h.shown(), ""), canary) {
				t.Error("the key is told")
			}
			h.Stop()
		})
	}
}

// TestAModelWithoutTools: a model that does not support tools answers nevertheless, and the limitation is reported.
func TestAModelWithoutTools(t *testing.T) {
	t.Parallel()
	const said = "m does not support tools"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil || r.URL.Path == "/v1/models":
			_, _ = w.Write([]byte(`{"data":[{"id":"m"}]}`))
		case strings.Contains(string(body), `"tools"`):
			http.Error(w, `{"error":{"message":"registry.ollama.ai/library/`+said+`"}}`, http.StatusBadRequest)
		default:
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"😊 Tea time.\"}}]}\n\ndata: [DONE]\n\n")
		}
	}))
	defer server.Close()
	p := appliancetest.NewPeers(t)
	c := appliancetest.Config()
	p.Use(&c)
	c.BrainDeep, c.Brains = nil, []config.Engine{appliancetest.OpenAI(openaibrain.Options{URL: server.URL + "/v1", Model: "m"})}
	h := open(t, c, t.TempDir())
	r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")})
	if !r.HasShown("Tea time.") {
		t.Errorf("the robot said %v", r.Stats().Turns)
	}
	if log := h.Logged.String(); strings.Count(log, said) != 1 {
		t.Errorf("the log does not tell it, or not once:\n%s", log)
	}
	h.Expect(http.StatusOK, "", "GET", "/health", "")
	if _, ready := h.Request("GET", "/ready", ""); !strings.Contains(ready, "tools") {
		t.Errorf("/ready says %s", ready)
	}
	_, seen, _ := commandLine(t, "doctor", "--config", writtenConfig(t, c), "--data", h.Data) // the exit code depends on the ports
	if !strings.Contains(seen, "but the model cannot use tools") {
		t.Errorf("the doctor says\n%s", seen)
	}
}

// shown returns the answers and ends in the appliance's records of turns.
func (h *running) shown() (all []string) {
	for _, turn := range h.Records.Turns(10) {
		all = append(all, turn.Said, turn.End)
	}
	return all
}

// TestTheDoctorSaysEachThingOnce: the doctor's report about a running appliance has one line for each engine, and
// contains the answer of the reflex brain.
func TestTheDoctorSaysEachThingOnce(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	_, out, _ := commandLine(t, "doctor", "--data", h.Data) // the exit code depends on whether the default ports are free
	times := map[string]int{}
	for line := range strings.Lines(out) {
		if part := strings.TrimSpace(line[min(6, len(line)-1):]); strings.HasPrefix(line, "ok  ") || strings.HasPrefix(line, "FAIL") ||
			strings.HasPrefix(line, "WARN") {
			name, _, _ := strings.Cut(part, "  ")
			times[name]++
		}
	}
	for _, part := range []string{"brain reflex", "recognizer sphinx", "synthesizer espeak", "mqtt", "disk", "clock"} {
		if times[part] != 1 {
			t.Errorf("%s is told of %d times:\n%s", part, times[part], out)
		}
	}
	if !strings.Contains(out, `"It is `) || strings.Contains(out, "1 robots") || !strings.Contains(out, "no robot known") {
		t.Errorf("it says\n%s", out)
	}
}
