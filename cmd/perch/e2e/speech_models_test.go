package e2e

import (
	"net/http"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/gateway/owner/admin"
	"perch/voice/wyoming"
	"perch/waittest"
)

// TestSpeechModels gets and removes models of perch-speech by the API, from a server that sends wrong files, cuts downloads
// off, or is slow.
func TestSpeechModels(t *testing.T) {
	t.Parallel()
	c := appliancetest.Config()
	c.Speech.Recognizers = append(c.Speech.Recognizers, config.Engine{Kind: "wyoming", Options: &wyoming.RecognizerKeys{URL: "tcp://192.0.2.1:10310"}})
	c.Speech.Synthesizers = append(c.Speech.Synthesizers, config.Engine{Kind: "wyoming", Options: &wyoming.SynthesizerKeys{URL: appliancetest.Speech(t)}})
	h := appliancetest.Start(t, c, t.TempDir())
	model := func(name string) (m admin.SpeechModel) {
		t.Helper()
		var all admin.SpeechModels
		h.Admin(http.MethodGet, "/api/v1/speech/models", "", &all)
		for _, m := range all.Models {
			if m.Name == name {
				return m
			}
		}
		t.Fatalf("there is no %s: %+v", name, all)
		return m
	}
	get := func(name string) admin.SpeechModel {
		t.Helper()
		h.Admin(http.MethodPost, "/api/v1/speech/models/"+name, "", nil)
		waittest.For(t, "the download ends", func() bool { return !model(name).Getting })
		return model(name)
	}
	refused := func(method, name string, status int, text string) {
		t.Helper()
		if got, body := h.Owner(method, "/api/v1/speech/models/"+name, ""); got != status || !strings.Contains(body, text) {
			t.Errorf("%s %s: %d %s, want %d and %q", method, name, got, body, status, text)
		}
	}

	if m := model("good"); m.Does != "detects" || m.Bytes != 22 || m.Licence != "MIT" || m.Installed || m.Getting || m.Error != "" {
		t.Errorf("the model is %+v", m)
	}
	if m := get("good"); !m.Installed || m.Error != "" {
		t.Errorf("the model that was downloaded is %+v", m)
	}
	if m := get("cut"); !m.Installed || m.Error != "" {
		t.Errorf("the model whose download was cut off is %+v", m)
	}
	if m := get("wrong"); m.Installed || !strings.Contains(m.Error, "another file") {
		t.Errorf("the model with a wrong sum is %+v", m)
	}
	if m := get("huge"); m.Installed || !strings.Contains(m.Error, "make room") {
		t.Errorf("the model that is larger than the disk is %+v", m)
	}
	h.Admin(http.MethodPost, "/api/v1/speech/models/slow", "", nil)
	waittest.For(t, "the half has come", func() bool { return model("slow").Progress == 11 })
	if !model("slow").Getting {
		t.Error("the slow model is not being downloaded")
	}
	refused(http.MethodPost, "huge", http.StatusConflict, "slow is being downloaded")
	h.Admin(http.MethodDelete, "/api/v1/speech/models/slow", "", nil)
	waittest.For(t, "the download is stopped", func() bool { return !model("slow").Getting })
	if m := model("slow"); m.Installed || m.Progress != 11 || m.Error != "" {
		t.Errorf("the model whose download was stopped is %+v", m)
	}
	if m := get("slow"); !m.Installed {
		t.Errorf("the model that was continued is %+v", m)
	}
	h.Admin(http.MethodDelete, "/api/v1/speech/models/good", "", nil)
	if model("good").Installed {
		t.Error("the model was not removed")
	}
	refused(http.MethodDelete, "good", http.StatusBadGateway, "there is no model")
	refused(http.MethodPost, "unknown", http.StatusNotFound, "unknown_model")
}

// TestSpeechModelsAreStoppedWithPerch checks that the end of Perch ends a download.
func TestSpeechModelsAreStoppedWithPerch(t *testing.T) {
	t.Parallel()
	address := appliancetest.Speech(t)
	c := appliancetest.Config()
	c.Speech.Synthesizers = append(c.Speech.Synthesizers, config.Engine{Kind: "wyoming", Options: &wyoming.SynthesizerKeys{URL: address}})
	h := appliancetest.Start(t, c, t.TempDir())
	h.Admin(http.MethodPost, "/api/v1/speech/models/slow", "", nil)
	s, err := wyoming.NewSpeech(address)
	if err != nil {
		t.Fatal(err)
	}
	half := func(isGetting bool) bool {
		list, err := s.Models(t.Context())
		return err == nil && list[3].Getting == isGetting && list[3].Progress == 11
	}
	waittest.For(t, "the half has come", func() bool { return half(true) })
	h.Stop()
	waittest.For(t, "the download is stopped", func() bool { return half(false) })
}

// TestSpeechIsMissing checks that the API says what to do without a perch-speech.
func TestSpeechIsMissing(t *testing.T) {
	t.Parallel()
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	var all admin.SpeechModels
	if h.Admin(http.MethodGet, "/api/v1/speech/models", "", &all); len(all.Models) > 0 || !strings.Contains(all.Missing, "how-to/speech-on-this-machine.md") {
		t.Errorf("the models are %+v", all)
	}
	if status, body := h.Owner(http.MethodPost, "/api/v1/speech/models/good", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "no_perch_speech") {
		t.Errorf("%d %s", status, body)
	}
}
