package appliance_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
)

// TestPerchSpeechIsUsedWhileItRuns starts perch-speech after the appliance, and stops it again.
func TestPerchSpeechIsUsedWhileItRuns(t *testing.T) {
	t.Parallel()
	address := appliancetest.FreeAddress(t)
	h := appliancetest.Configured(t, "", func(s *config.Source) {
		s.Speech = &config.PerchSpeech{Address: "tcp://" + address, Every: 5 * time.Millisecond}
	})
	if h.Part("perch-speech synthesizer").Name != "" || h.Part("synthesizer wyoming").Name != "" {
		t.Error("perch-speech is used before it runs")
	}
	stop := appliancetest.StartPerchSpeech(t, address, "en-US")
	h.Eventually("perch-speech is used", func() bool { return h.Part("synthesizer wyoming").OK })
	if part := h.Part("perch-speech synthesizer"); part.Note != "robots use its anna" {
		t.Errorf("the status says %q", part.Note)
	}
	if h.Part("synthesizer espeak").Name == "" || h.Part("recognizer wyoming").Name != "" {
		t.Error("the other engines are not the default ones")
	}
	if _, shown := h.Owner(http.MethodGet, "/api/v1/config", ""); !strings.Contains(shown, `"restart":[]`) || !strings.Contains(shown, address) {
		t.Errorf("the settings are %s", shown)
	}
	stop()
	h.Eventually("the default voice is used again", func() bool { return h.Part("synthesizer wyoming").Name == "" })
	if h.Part("perch-speech synthesizer").Name != "" {
		t.Error("perch-speech is reported after its end")
	}
}
