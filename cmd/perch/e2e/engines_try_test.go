package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/gateway/owner/admin"
	"perch/must"
	"perch/voice"
	"perch/voice/openai"
)

// TestEnginesAreTriedByTheirOwner: the API lets the owner try a synthesizer, a recognizer and a brain. An engine
// that has failed can be tried although turns do not use it, and the trial changes its condition.
func TestEnginesAreTriedByTheirOwner(t *testing.T) {
	var works atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil || !strings.HasSuffix(r.URL.Path, "/audio/transcriptions") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if !works.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, `{"text":"Good evening."}`)
	}))
	defer server.Close()
	c := appliancetest.Config()
	c.Speech.Recognizers = append([]config.Engine{{Kind: "openai", Options: &openai.RecognizerKeys{URL: server.URL + "/v1", Model: "whisper"}}}, c.Speech.Recognizers...)
	h := appliancetest.Start(t, c, t.TempDir())

	status, text := h.Owner(http.MethodPost, "/api/v1/engines/try?part=synthesizer+espeak", `{"text":"what time is it"}`)
	wav, err := voice.NewWAVReader(strings.NewReader(text))
	if status != http.StatusOK || err != nil || wav.Rate != 24000 || wav.Channels() != 1 {
		t.Fatalf("%d, %v, %.100q", status, err, text)
	}
	spoken := make([]int16, 24000*4)
	n, err := wav.Read(spoken)
	pcm := spoken[:n]
	for err == nil {
		n, err = wav.Read(spoken[len(pcm):])
		pcm = spoken[:len(pcm)+n]
	}
	heard := voice.NewResampler(24000, voice.MicRate).Resample(pcm)
	var recording bytes.Buffer
	must.Succeed(t, voice.WriteWAV(&recording, voice.MicRate, append(heard, make([]int16, voice.MicRate/2)...)))
	t.Logf("spoken in %d samples of 24 kHz", len(pcm))
	try := func(part, body string) (tried admin.TryResult) {
		t.Helper()
		h.Admin(http.MethodPost, "/api/v1/engines/try?part="+part, body, &tried)
		t.Logf("%s: %+v", part, tried)
		return tried
	}
	if got := try("recognizer+sphinx", recording.String()); got.Text != "what time is it" {
		t.Errorf("understood as %q", got.Text)
	}
	if got := try("brain+reflex", `{"text":"what time is it"}`); !strings.HasPrefix(got.Text, "It is ") {
		t.Errorf("answered with %q", got.Text)
	}

	for range 2 { // after the first failure, a turn would not use the engine
		status, text := h.Owner(http.MethodPost, "/api/v1/engines/try?part=recognizer+openai", recording.String())
		if status != http.StatusBadGateway || !strings.Contains(text, `"engine_failed"`) || !strings.Contains(text, "500") {
			t.Errorf("%d %s", status, text)
		}
		if p := h.Part("recognizer openai"); p.OK {
			t.Errorf("it failed, and its condition is %+v", p)
		}
	}
	works.Store(true)
	if got := try("recognizer+openai", recording.String()); got.Text != "Good evening." {
		t.Errorf("understood as %q", got.Text)
	}
	var all []admin.Engine
	status, text = h.Owner(http.MethodGet, "/api/v1/engines", "")
	if err := json.Unmarshal([]byte(text), &all); err != nil || status != http.StatusOK || len(all) != 4 ||
		all[0].Part != "recognizer openai" || !all[0].OK || all[0].Try != "sound" || all[0].Kind != "openai" || all[0].Since.IsZero() {
		t.Errorf("%d %s", status, text)
	}
	if p := h.Part("recognizer openai"); !p.OK {
		t.Errorf("it works, and its condition is %+v", p)
	}
}
