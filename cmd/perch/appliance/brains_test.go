package appliance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	openaibrain "perch/agent/openai"
	"perch/agent/reflex"
	"perch/agent/thinker"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/cmd/perch/engines"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/voice"
	"perch/voice/wyoming"
)

// model is a fake server of a language model with OpenAI's protocol. Its responses are alternately a call of a
// tool and a text.
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

// toolCaller is a fake server of a language model that calls a tool, and then writes the tool's result.
type toolCaller struct {
	tool, args string // name of the tool, and its arguments in JSON

	mu   sync.Mutex
	asks []string // the bodies of requests
}

// serve serves the model until the test ends, and returns its URL.
func (m *toolCaller) serve(t *testing.T) (url string) {
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

func (m *toolCaller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var ask struct {
		Messages []struct{ Role, Content string }
	}
	if err != nil || r.URL.Path != "/v1/chat/completions" || json.Unmarshal(body, &ask) != nil {
		http.NotFound(w, r)
		return
	}
	m.mu.Lock()
	m.asks = append(m.asks, string(body))
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	delta := fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":%q,"arguments":%q}}]}`, m.tool, m.args)
	if last := ask.Messages[len(ask.Messages)-1]; last.Role == "tool" {
		delta = fmt.Sprintf(`{"content":%q}`, "It says: "+last.Content+".")
	}
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\ndata: [DONE]\n\n", delta)
}

// built builds a program of a module that go.mod names, and returns its path.
func built(t *testing.T, pkg string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return program
}

// TestALanguageModelAnswers checks that a model receives the recognized text, calls a tool of the robot and answers,
// that the answer is spoken with its face and without Markdown, and that an unreachable model is skipped.
func TestALanguageModelAnswers(t *testing.T) {
	t.Parallel()
	m := &model{}
	server := httptest.NewServer(m)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "key")
	must.Succeed(t, os.WriteFile(file, []byte("canary-key-0123456789\n"), 0o600))
	c := appliancetest.Config()
	c.Brains = []config.Engine{
		appliancetest.OpenAI(openaibrain.Options{URL: "http://127.0.0.1:9/v1", Model: "away"}),
		appliancetest.OpenAI(openaibrain.Options{URL: server.URL + "/v1", Model: "m", KeyFile: file}),
		{Kind: "reflex", Options: &reflex.Keys{}},
	}
	h := appliancetest.Start(t, c, t.TempDir())
	r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")})
	r.CheckComplete(t)
	if !r.HasShown("It is tea time.") || !r.HasShown("Sit down.") {
		t.Errorf("answered %v", r.Stats().Turns[0].Answer)
	}
	face, volume := "", 0
	for _, e := range r.Observations() {
		switch e := e.(type) {
		case simrobot.EmotionShown:
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
	if strings.Contains(h.Logged.String(), "canary") {
		t.Error("the key is in the log")
	}
}

// TestToolsOfAnMCPServer checks that a model can use a tool of a configured MCP server, here an example of MCP's Go
// library.
func TestToolsOfAnMCPServer(t *testing.T) {
	program := built(t, "github.com/modelcontextprotocol/go-sdk/examples/server/hello")
	m := &toolCaller{tool: "greeter_greet", args: `{"name":"Anna"}`}
	c := appliancetest.Config()
	c.Brains = []config.Engine{appliancetest.OpenAI(openaibrain.Options{URL: m.serve(t), Model: "m"},
		thinker.ToolServer{Name: "greeter", Command: []string{program}})}
	h := appliancetest.Start(t, c, t.TempDir())
	r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")})
	if !r.HasShown("It says: Hi Anna.") {
		t.Errorf("the robot said %v", r.Stats().Turns)
	}
	if _, ready := h.Request("GET", "/ready", ""); !strings.Contains(ready, `"name":"tools greeter","ok":true`) {
		t.Errorf("/ready says %s", ready)
	}
	h.Stop()
	if left := appliancetest.ChildProcesses(t, os.Getpid()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestLanguagesOverWyoming checks that the Wyoming server offers all configured languages, and the embedded
// recognizer only for English.
func TestLanguagesOverWyoming(t *testing.T) {
	for languages, heard := range map[config.Languages]bool{"de, en-GB": true, "de": false} {
		c := appliancetest.Config()
		c.Wyoming.Listen, c.Language = "127.0.0.1:0", languages
		h := appliancetest.Start(t, c, t.TempDir())
		info := described(t, h)
		if len(info.TTS) != 1 || len(info.Handle) != 1 {
			t.Fatalf("%+v", info)
		}
		for _, offered := range [][]string{info.TTS[0].Voices[0].Languages, info.Handle[0].Models[0].Languages} {
			if !slices.Equal(offered, languages.List()) {
				t.Errorf("%s: offered are %q", languages, offered)
			}
		}
		if hears := len(info.ASR) == 1; hears != heard || hears && !slices.Equal(info.ASR[0].Models[0].Languages, []string{"en-GB"}) {
			t.Errorf("%s: heard are %+v", languages, info.ASR)
		}
		h.Stop()
	}
}

// TestConfiguredEnginesOverWyoming checks that the Wyoming server offers the configured engines for a language other
// than English.
func TestConfiguredEnginesOverWyoming(t *testing.T) {
	c := appliancetest.Config()
	c.Wyoming.Listen, c.Language = "127.0.0.1:0", "de"
	c.Speech.Recognizers = config.Recognizers{{Kind: "wyoming", Options: &wyoming.RecognizerKeys{URL: "tcp://127.0.0.1:9"}}}
	c.Speech.Synthesizers = config.Synthesizers{{Kind: "wyoming", Options: &wyoming.SynthesizerKeys{URL: "tcp://127.0.0.1:9"}}}
	info := described(t, appliancetest.Start(t, c, t.TempDir()))
	if len(info.ASR) != 1 || info.ASR[0].Models[0].Name != "wyoming" || !slices.Equal(info.ASR[0].Models[0].Languages, []string{"de"}) {
		t.Errorf("recognizers %+v", info.ASR)
	}
	if len(info.TTS) != 1 || info.TTS[0].Voices[0].Name != "wyoming" {
		t.Errorf("synthesizers %+v", info.TTS)
	}
}

// described returns the description of an appliance's Wyoming server.
func described(t *testing.T, h *appliancetest.Appliance) (info wyoming.Info) {
	t.Helper()
	conn := must.Value(net.Dial("tcp", h.WyomingAddr.String()))(t)
	defer conn.Close()
	ask := must.Value(wyoming.NewEvent(wyoming.TypeDescribe, nil, nil))(t)
	must.Succeed(t, wyoming.NewWriter(conn).Write(ask))
	answer, err := wyoming.NewReader(conn, wyoming.Limits{}).Read()
	must.Succeed(t, errors.Join(err, answer.Decode(&info)))
	return info
}

// TestServedOverWyoming checks synthesis, recognition and the agent over Wyoming. The recognizer receives the
// synthesizer's sound.
func TestServedOverWyoming(t *testing.T) {
	c := appliancetest.Config()
	c.Wyoming.Listen = "127.0.0.1:0"
	h := appliancetest.Start(t, c, t.TempDir())
	client := must.Value(wyoming.New(wyoming.Options{Address: "tcp://" + h.WyomingAddr.String()}))(t)
	u := voice.NewUtterance()
	to16 := voice.NewResampler(voice.SpeakerRate, voice.MicRate)
	if err := client.Synthesize(t.Context(), "What time is it?", voice.Options{}, func(pcm []int16) error {
		u.Write(to16.Resample(pcm))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	u.Finish()
	if heard, err := client.Recognize(t.Context(), u, voice.Options{Language: "en"}); err != nil || heard.Text != "what time is it" {
		t.Errorf("heard %+v, %v", heard, err)
	}
	conn := must.Value(net.Dial("tcp", h.WyomingAddr.String()))(t)
	defer conn.Close()
	ask := must.Value(wyoming.NewEvent(wyoming.TypeTranscript, wyoming.Text{Text: "remember that my keys are in the kitchen"}, nil))(t)
	must.Succeed(t, wyoming.NewWriter(conn).Write(ask))
	for r := wyoming.NewReader(conn, wyoming.Limits{}); ; {
		e := must.Value(r.Read())(t)
		var said wyoming.Text
		if e.Type == "handled" && e.Decode(&said) == nil {
			if !strings.Contains(said.Text, "remember") {
				t.Errorf("answered %q", said.Text)
			}
			break
		}
	}
	if found := h.Memory.Search("keys", time.Now()); len(found) != 1 {
		t.Errorf("remembered %+v", found)
	}
}

// TestAWyomingServerNeedsNoAddress checks that engines of kind wyoming can be made without a url; Perch then searches
// the network for servers.
func TestAWyomingServerNeedsNoAddress(t *testing.T) {
	file := appliancetest.WriteConfig(t, "speech:\n  recognizers: [{kind: wyoming}]\n  synthesizers: [{kind: wyoming}]")
	c := must.Value((config.Source{File: file}).Load())(t)
	nobody := func(context.Context) ([]string, error) { return nil, nil }
	e := must.Value(engines.New(nil, &c, drivers.Brain{}, nobody, nil, slog.New(slog.DiscardHandler)))(t)
	e.Close()
}
