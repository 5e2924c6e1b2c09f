package hass

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"perch/limit"
	"perch/must"
)

// began starts a run at a fake Home Assistant. script receives the command that starts the run, and
// responds.
func began(t *testing.T, s Start, script func(p *peer, command map[string]any)) *Run {
	t.Helper()
	c := serve(t, func(p *peer) { p.greet(); script(p, p.command()) })
	run, err := dial(t, c).Run(t.Context(), s)
	must.Succeed(t, err)
	t.Cleanup(run.Close)
	return run
}

func TestARunRecognizesSpeech(t *testing.T) {
	heard := make(chan []byte, 8)
	run := began(t, Start{From: StageSpeech, To: StageSpeech, Rate: 16000, Pipeline: "p"}, func(p *peer, m map[string]any) {
		if got, _ := json.Marshal(m); string(
			got) != `{"end_stage":"stt","id":1,"input":{"no_vad":true,"sample_rate":16000},"pipeline":"p","start_stage":"stt","type":"assist_pipeline/run"}` {
			t.Errorf("%s", got)
		}
		p.text(`{"id":1,"type":"result","success":true,"result":null}`)
		p.split(`{"id":1,"type":"event","event":{"type":"run-start","data":{"pipeline":"p","runner_data":{"stt_binary_handler_id":7,"timeout":300}},"timestamp":"x"}}`)
		for {
			kind, sound := p.read()
			if kind != websocket.BinaryMessage {
				t.Errorf("kind %d", kind)
			}
			if heard <- sound; len(sound) == 1 {
				break
			}
		}
		p.text(`{"id":1,"type":"event","event":{"type":"stt-end","data":{"stt_output":{"text":"Hello."}}}}`)
		p.text(`{"id":1,"type":"event","event":{"type":"run-end","data":null}}`)
		if m := p.command(); m["type"] != "unsubscribe_events" || m["subscription"] != 1.0 {
			t.Errorf("%v", m)
		}
		close(heard)
		p.hangUp()
	})
	e, err := run.Next(t.Context(), soon)
	handler, herr := e.Handler()
	if err != nil || herr != nil || e.Type != EventRunStart || handler != 7 {
		t.Fatalf("%+v, %v, %v", e, err, herr)
	}
	for _, err := range []error{run.Sound(t.Context(), handler, []byte("pcm")), run.EndSound(t.Context(), handler)} {
		if err != nil {
			t.Error(err)
		}
	}
	e, err = run.Next(t.Context(), soon)
	if text, terr := e.Transcript(); err != nil || terr != nil || text != "Hello." {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := run.Next(t.Context(), soon); err != nil || e.Type != EventRunEnd {
		t.Errorf("%+v, %v", e, err)
	}
	for range 2 {
		if _, err := run.Next(t.Context(), soon); err != io.EOF {
			t.Error(err)
		}
	}
	run.Close()
	if a, b := <-heard, <-heard; string(a) != "\x07pcm" || string(b) != "\x07" {
		t.Errorf("%q, %q", a, b)
	}
	<-heard
}

func TestRunsThatFail(t *testing.T) {
	for name, test := range map[string]struct{ message, words string }{
		"no pipeline": {`{"id":1,"type":"result","success":false,"error":{"code":"pipeline-not-found","message":"Pipeline not found: id=x"}}`,
			"has no such Assist pipeline; check pipeline"},
		"no speech": {`{"id":1,"type":"result","success":false,"error":{"code":"stt-provider-missing"}}`, "has no speech to text"},
		"no agent":  {`{"id":1,"type":"result","success":false,"error":{"code":"intent-not-supported"}}`, "check agent"},
		"an error": {`{"id":1,"type":"event","event":{"type":"error","data":{"code":"intent-failed","message":"Unexpected error"}}}`,
			"(Unexpected error)"},
		"a timeout":     {`{"id":1,"type":"event","event":{"type":"error","data":{"code":"timeout"}}}`, "did not finish its Assist pipeline in time"},
		"an odd error":  {`{"id":1,"type":"event","event":{"type":"error","data":[]}}`, "failed; see the log"},
		"an odd event":  {`{"id":1,"type":"event","event":[]}`, "not part of its API"},
		"another event": {`{"id":1,"type":"event","event":{"type":7}}`, "not part of its API"},
	} {
		t.Run(name, func(t *testing.T) {
			run := began(t, Start{From: StageIntent, To: StageIntent, Text: "x"},
				func(p *peer, _ map[string]any) { p.text("%s", test.message); p.hangUp() })
			_, err := run.Next(t.Context(), soon)
			sentence(t, err, test.words)
		})
	}
}

func TestARunThatIsSlow(t *testing.T) {
	run := began(t, Start{From: StageIntent, To: StageIntent}, func(p *peer, _ map[string]any) { p.hangUp() })
	sentence(t, run.AwaitStart(t.Context(), 20*time.Millisecond), "did not answer within 20ms")
	_, err := run.Next(t.Context(), 20*time.Millisecond)
	sentence(t, err, "did not answer within 20ms")
	_, err = run.Next(t.Context(), 0)
	sentence(t, err, "did not answer within 0s")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run.Next(ctx, soon); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAwaitStartKeepsTheEvent(t *testing.T) {
	run := began(t, Start{From: StageIntent, To: StageIntent}, func(p *peer, _ map[string]any) {
		p.text(`{"id":1,"type":"event","event":{"type":"run-end"}}`)
		p.hangUp()
	})
	must.Succeed(t, run.AwaitStart(t.Context(), soon))
	if e, err := run.Next(t.Context(), soon); err != nil || e.Type != EventRunEnd {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestDeltas(t *testing.T) {
	for data, want := range map[string]Delta{
		`{"chat_log_delta":{"role":"assistant","content":null}}`: {Role: "assistant"},
		`{"chat_log_delta":{"content":"Hi"}}`:                    {Content: "Hi"},
		`{"chat_log_delta":{"thinking_content":"Hm"}}`:           {Thought: "Hm"},
		`{"chat_log_delta":{"tool_calls":[{"id":"1","tool_name":"HassTurnOn","tool_args":{"name":"x"},"external":false}]}}`:          {Calls: []ToolCall{{"1", "HassTurnOn"}}},
		`{"chat_log_delta":{"role":"tool_result","agent_id":"a","tool_call_id":"1","tool_name":"x","tool_result":{"success":true}}}`: {Role: "tool_result", CallID: "1"},
		`{"chat_log_delta":{"role":"tool_result","tool_call_id":"1","tool_result":{"error":"HomeAssistantError"}}}`: {Role: "tool_result",
			CallID: "1", Failed: true},
		`{"chat_log_delta":{"role":"tool_result","tool_call_id":"1","tool_result":[7]}}`: {Role: "tool_result", CallID: "1"},
		`{"chat_log_delta":{"role":"tool_result","tool_call_id":"1","result":{"data":{},"error":true}}}`: {Role: "tool_result", CallID: "1",
			Failed: true},
		`{"chat_log_delta":{"role":"tool_result","tool_call_id":"1","result":{"data":{},"error":false}}}`: {Role: "tool_result", CallID: "1"},
	} {
		got, there, err := Event{Data: json.RawMessage(data)}.Delta()
		if err != nil || !there || !slices.Equal(got.Calls, want.Calls) || got.Role != want.Role || got.Content != want.Content ||
			got.CallID != want.CallID || got.Failed != want.Failed || got.Thought != want.Thought {
			t.Errorf("%s: %+v, %v", data, got, err)
		}
	}
	if _, there, err := (Event{Data: json.RawMessage(`{"tts_start_streaming":true}`)}).Delta(); there || err != nil {
		t.Error(err)
	}
}

func TestConverse(t *testing.T) {
	var got, path, auth string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got, path, auth = string(body), r.Method+r.URL.Path, r.Header.Get("Authorization")
		_, _ = io.WriteString(w,
			`{"response":{"speech":{"plain":{"speech":"It is on.","extra_data":null}},"card":{},"language":"en","response_type":"action_done","data":{"targets":[]}},"conversation_id":"01","continue_conversation":false}`)
	}))
	defer server.Close()
	reply, err := client(t, server.URL, Options{}).Converse(t.Context(), soon, Question{Text: "on", Language: "en", Conversation: "01"})
	if err != nil || reply != (Reply{"It is on.", "action_done", "", "01"}) {
		t.Errorf("%+v, %v", reply, err)
	}
	if got != `{"text":"on","language":"en","conversation_id":"01"}` || path != "POST/api/conversation/process" || auth != "Bearer "+canary {
		t.Error(got, path, auth)
	}
}

func TestRESTThatFails(t *testing.T) {
	release := make(chan struct{})
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter)
		words  string
	}{
		"404":     {func(w http.ResponseWriter) { http.Error(w, "404: Not Found", 404) }, "has no /api/conversation/process (HTTP 404: Not Found)"},
		"a page":  {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }, "not part of its API"},
		"endless": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, strings.Repeat(" ", limit.File+1)) }, "an answer that is too long"},
		"cut": {func(w http.ResponseWriter) { w.Header().Set("Content-Length", "9"); _, _ = io.WriteString(w, "{") },
			"cut the connection in the middle"},
		"silent": {func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-release
		}, "did not answer within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { test.answer(w) }))
			t.Cleanup(server.Close)
			if name == "silent" {
				t.Cleanup(func() { close(release) })
			}
			_, err := client(t, server.URL, Options{}).Converse(t.Context(), 300*time.Millisecond, Question{Text: "x"})
			sentence(t, err, test.words)
		})
	}
}

func TestRESTEndsWithItsContextAndItsClient(t *testing.T) {
	asked := make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // net/http detects the end of the connection only after the body was read
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	c := client(t, server.URL, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := c.Converse(ctx, soon, Question{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go func() { <-asked; c.Close() }()
	_, err := c.Converse(t.Context(), soon, Question{})
	sentence(t, err, "is closed")
}
