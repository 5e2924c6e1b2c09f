package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/gateway/owner/admin"
	"perch/must"
	"perch/voice"
)

// engines is a fake with a recognizer, a synthesizer and a brain.
type engines struct {
	heard   int // number of samples that the recognizer was given
	err     error
	forever bool // the engines block until their context ends
	sound   int  // number of samples that the synthesizer makes
	say     []string
}

func (e *engines) Engines() []admin.Engine {
	return []admin.Engine{
		{Part: "recognizer sphinx", List: "recognizer", Kind: "sphinx", OK: true, Try: admin.TrySound},
		{Part: "synthesizer espeak", List: "synthesizer", Kind: "espeak", OK: true, Try: admin.TryText},
		{Part: "brain openai 2", List: "brain", Kind: "openai", Where: "tiny at 127.0.0.1", Note: "<b>away</b>", Try: admin.TryText},
	}
}

func (e *engines) Kinds() any { return map[string]any{} }

func (e *engines) wait(ctx context.Context) error {
	if e.forever {
		<-ctx.Done()
		return ctx.Err()
	}
	return e.err
}

func (e *engines) Recognize(ctx context.Context, _ string, pcm []int16) (string, error) {
	e.heard = len(pcm)
	return "what time is it", e.wait(ctx)
}

func (e *engines) Speak(ctx context.Context, _, _ string, out func([]int16) error) error {
	for n := e.sound; n > 0; n -= 480 {
		if err := out(make([]int16, min(n, 480))); err != nil {
			return err
		}
	}
	return e.wait(ctx)
}

func (e *engines) Answer(ctx context.Context, _, text string, out func(string) error) error {
	for _, sentence := range append([]string{text + "?"}, e.say...) {
		if err := out(sentence); err != nil {
			return err
		}
	}
	return e.wait(ctx)
}

const (
	tryRecognizer  = "/api/v1/engines/try?part=recognizer+sphinx"
	trySynthesizer = "/api/v1/engines/try?part=synthesizer%20espeak"
	tryBrain       = "/api/v1/engines/try?part=brain+openai+2"
)

// recording returns a mono WAV file of silence.
func recording(t testing.TB, rate, samples int) string {
	t.Helper()
	var wav bytes.Buffer
	must.Succeed(t, voice.WriteWAV(&wav, rate, make([]int16, samples)))
	return wav.String()
}

// TestTryEngines checks which inputs engines accept, and that their output is bounded.
func TestTryEngines(t *testing.T) {
	h := newAppliance(t)
	if all := get[[]admin.Engine](t, h, "/api/v1/engines"); len(all) != 3 || all[2].Note != "<b>away</b>" || all[0].Try != "sound" {
		t.Errorf("%+v", all)
	}
	whole := recording(t, 16000, 15*16000)
	stereo := []byte(recording(t, 16000, 100))
	stereo[22] = 2
	for _, c := range []struct {
		name, path, body string
		status           int
		answer           string
	}{
		{"a recording", tryRecognizer, whole, 200, `{"text":"what time is it","ms":`},
		{"a text", tryBrain, `{"text":" hello\nyou "}`, 200, `{"text":"hello you?","ms":`},
		{"no engine", "/api/v1/engines/try", `{"text":"hello"}`, 404, `"unknown_engine"`},
		{"another engine", "/api/v1/engines/try?part=brain", `{"text":"hello"}`, 404, `"unknown_engine"`},
		{"a text for a recognizer", tryRecognizer, `{"text":"hello"}`, 422, `"bad_sound"`},
		{"nothing", tryRecognizer, ``, 422, `"bad_sound"`},
		{"no sound", tryRecognizer, recording(t, 16000, 0), 422, `this one has no sound`},
		{"a header cut off", tryRecognizer, whole[:40], 422, `"bad_sound"`},
		{"another rate", tryRecognizer, recording(t, 24000, 100), 422, `24000 Hz`},
		{"two channels", tryRecognizer, string(stereo), 422, `2 channels`},
		{"too long", tryRecognizer, recording(t, 16000, 15*16000+1), 422, `this one is longer`},
		{"much too long", tryRecognizer, recording(t, 16000, 20*16000), 413, `"body_too_large"`},
		{"a recording for a brain", tryBrain, whole, 400, `"bad_body"`},
		{"no text", tryBrain, `{"text":" "}`, 400, `"bad_body"`},
		{"a long text", trySynthesizer, `{"text":"` + strings.Repeat("x", 1001) + `"}`, 400, `"bad_body"`},
		{"a synthesizer without a sound", trySynthesizer, `{"text":"hello"}`, 502, `"engine_failed"`},
	} {
		h.engines.heard = 0
		h.wants(t, http.MethodPost, c.path, c.body, c.status, c.answer)
		if want := map[bool]int{true: 15 * 16000}[c.name == "a recording"]; h.engines.heard != want {
			t.Errorf("%s: the recognizer is given %d samples, want %d", c.name, h.engines.heard, want)
		}
	}
	for made, want := range map[int]int{1: 1, 24000: 24000, 100 * 24000: 60 * 24000} {
		h.engines.sound = made
		status, body := h.ask(http.MethodPost, trySynthesizer, `{"text":"hello"}`)
		wav, err := voice.NewWAVReader(strings.NewReader(body))
		if status != http.StatusOK || err != nil || wav.Rate != 24000 || wav.Channels() != 1 || len(body) != 44+2*want {
			t.Errorf("%d samples: %d, %d bytes (%v)", made, status, len(body), err)
		}
	}
	h.engines.say = []string{strings.Repeat("ä", 3000), "more"}
	var tried admin.TryResult
	status, body := h.ask(http.MethodPost, tryBrain, `{"text":"hello"}`)
	if err := json.Unmarshal([]byte(body), &tried); err != nil || status != http.StatusOK || len(tried.Text) > 4000 || len(tried.Text) < 3900 {
		t.Errorf("an endless answer: %d, %d bytes (%v)", status, len(tried.Text), err)
	}
}

// TestEngineFailures checks that the owner gets the error of an engine, and that an engine that blocks is stopped
// after 30 seconds. A brain that has begun its reply by then has succeeded.
func TestEngineFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAppliance(t)
		h.engines.err = errors.New("the server at 127.0.0.1 does not answer")
		h.wants(t, http.MethodPost, tryRecognizer, recording(t, 16000, 100), http.StatusBadGateway,
			`={"error":{"code":"engine_failed","message":"the server at 127.0.0.1 does not answer"}}`)
		h.engines.err, h.engines.forever = nil, true
		began := time.Now()
		if status, body := h.ask(http.MethodPost, tryRecognizer, recording(t, 16000, 100)); status != http.StatusGatewayTimeout ||
			!strings.Contains(body, `"engine_timeout"`) || time.Since(began) != 30*time.Second {
			t.Errorf("after %s: %d %s", time.Since(began), status, body)
		}
		h.wants(t, http.MethodPost, tryBrain, `{"text":"hello"}`, http.StatusOK, `={"text":"hello?","ms":30000}`)
	})
}

// TestOneTryPerEngine checks that each engine can be tried by one request at a time.
func TestOneTryPerEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAppliance(t)
		h.engines.forever = true
		done := make(chan int)
		go func() { status, _ := h.ask(http.MethodPost, tryBrain, `{"text":"hello"}`); done <- status }()
		synctest.Wait()
		h.wants(t, http.MethodPost, tryBrain, `{"text":"hello"}`, http.StatusConflict, `"busy"`)
		h.wants(t, http.MethodPost, tryRecognizer, `x`, http.StatusUnprocessableEntity, "")
		if status := <-done; status != http.StatusOK {
			t.Errorf("the first: %d", status)
		}
		h.engines.forever = false
		h.wants(t, http.MethodPost, tryBrain, `{"text":"hello"}`, http.StatusOK, "")
	})
}

// FuzzTry checks that no body causes a panic, and that no refused recording reaches the recognizer.
func FuzzTry(f *testing.F) {
	f.Add([]byte(recording(f, 16000, 100)))
	f.Add([]byte(recording(f, 24000, 10)))
	h := newAppliance(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		h.engines.heard = 0
		status, answer := h.ask(http.MethodPost, tryRecognizer, string(body))
		if status != http.StatusOK && status != http.StatusUnprocessableEntity && status != http.StatusRequestEntityTooLarge ||
			(status == http.StatusOK) != (h.engines.heard > 0) {
			t.Errorf("%d %s, %d samples", status, answer, h.engines.heard)
		}
	})
}
