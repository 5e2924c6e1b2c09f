package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"perch/firmware-tools/simrobot"
)

// model is a server of a language model that always asks for one tool and then
// answers, as OpenAI's own streams it.
type model struct {
	mu   sync.Mutex
	asks []string
	key  string
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Path != "/v1/chat/completions" {
		http.NotFound(w, r)
		return
	}
	m.mu.Lock()
	m.asks, m.key = append(m.asks, string(body)), r.Header.Get("Authorization")
	first := len(m.asks)%2 == 1
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(delta string) { fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta) }
	if first {
		say(`{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"self_audio_speaker_set_volume","arguments":"{\"volume\":"}}]}`)
		say(`{"tool_calls":[{"index":0,"function":{"arguments":"30}"}}]}`)
	} else {
		for _, word := range []string{"\\ud83d\\ude0a ", "It is ", "**tea time**", ". ", "Sit ", "down."} {
			say(`{"content":"` + strings.ReplaceAll(word, `\\`, `\`) + `"}`)
		}
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// TestALanguageModelAnswers: the words of a robot go to a model, which uses the
// robot's tools; its answer is spoken as it streams, with its face and without
// its Markdown. A model that is away is passed over.
func TestALanguageModelAnswers(t *testing.T) {
	m := &model{}
	server := httptest.NewServer(m)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("canary-key-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := testConfig()
	c.Brains = []brainConfig{
		{Kind: "openai", URL: "http://127.0.0.1:9/v1", Model: "away"},
		{Kind: "openai", URL: server.URL + "/v1", Model: "m", KeyFile: file},
		{Kind: "reflex"},
	}
	h := open(t, c, t.TempDir())
	r := h.robot(simrobot.Options{Say: sentences(t, "what time is it")})
	r.whole(t)
	if !r.showed("It is tea time.") || !r.showed("Sit down.") {
		t.Errorf("answered %v", r.Stats().Turns[0].Answer)
	}
	face, volume := "", 0
	for _, e := range r.happened {
		switch e := e.(type) {
		case simrobot.Felt:
			face = e.Emotion
		case simrobot.VolumeChanged:
			volume = e.Volume
		}
	}
	if face != "happy" || volume != 30 {
		t.Errorf("the face is %q, the volume %d", face, volume)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var ask struct {
		Model    string
		Messages []struct{ Role string }
		Tools    []struct{ Function struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(m.asks[0]), &ask); err != nil || ask.Model != "m" || ask.Messages[0].Role != "system" || len(ask.Tools) < 10 {
		t.Errorf("the model was asked %s (%v)", m.asks[0], err)
	}
	if m.key != "Bearer canary-key-0123456789" {
		t.Errorf("the key was sent as %q", m.key)
	}
	if strings.Contains(h.log.String(), "canary") {
		t.Error("the key is in the log")
	}
}

// TestNobodyAnswers: where no brain can, the robot says so, and the next turn is
// clean.
func TestNobodyAnswers(t *testing.T) {
	c := testConfig()
	c.Brains = []brainConfig{{Kind: "openai", URL: "http://127.0.0.1:9/v1", Model: "away"}}
	h := open(t, c, t.TempDir())
	r := h.robot(simrobot.Options{Say: sentences(t, "what time is it")})
	r.whole(t)
	if !r.showed("I cannot think right now. The command perch doctor says why.") {
		t.Errorf("answered %v", r.Stats().Turns[0].Answer)
	}
	if log := h.log.String(); !strings.Contains(log, "nothing listens") {
		t.Errorf("the log does not name the cause:\n%s", log)
	}
}
