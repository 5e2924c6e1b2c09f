package appliance

import (
	"log/slog"
	"math"
	"testing"
	"time"

	"perch/cmd/perch/config"
	"perch/language"
	"perch/voice"
)

// TestSixLanguagesAreSpoken by the embedded engines, each by the one that knows it. What
// is said in English is understood by the embedded recognizer; for the others there is no
// recognizer without a model of its own.
func TestSixLanguagesAreSpoken(t *testing.T) {
	c := config.Default()
	c.Speech.Synthesizers = append([]config.Synthesizer{{Kind: "openjtalk"}}, c.Speech.Synthesizers...)
	e, err := NewEngines(&c, BrainOptions{}, nil, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var words language.Catalogue
	speak := func(tag, text string) (pcm []int16) {
		t.Helper()
		err := e.synthesizers.Synthesize(t.Context(), text, voice.Options{Language: tag}, func(p []int16) error {
			pcm = append(pcm, p...)
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", tag, err)
		}
		return pcm
	}
	at := time.Date(2026, 3, 4, 15, 20, 0, 0, time.UTC)
	for _, tag := range language.All() {
		text := words.In(string(tag)).Clock(at)
		pcm, sum := speak(string(tag), text), 0.0
		for _, s := range pcm {
			sum += float64(s) * float64(s)
		}
		long, rms := time.Duration(len(pcm))*time.Second/voice.SpeakerRate, math.Sqrt(sum/float64(max(1, len(pcm))))
		t.Logf("%-7s %4.1f s at RMS %4.0f: %s", tag, long.Seconds(), rms, text)
		if long < time.Second || long > 5*time.Second || rms < 500 {
			t.Errorf("%s: %s of sound at RMS %.0f", tag, long, rms)
		}
	}
	for _, n := range e.All {
		if n.Synthesizer != nil && n.Failures() > 0 {
			t.Errorf("%s has failed", n.Part)
		}
	}
	u := voice.NewUtterance()
	u.Write(make([]int16, voice.MicRate/2))
	u.Write(voice.NewResampler(voice.SpeakerRate, voice.MicRate).Resample(speak("en", "What time is it?")))
	u.Write(make([]int16, voice.MicRate/2))
	u.Finish()
	heard, err := e.recognizers.Recognize(t.Context(), u, voice.Options{Language: "en"})
	t.Logf("sphinx hears %q", heard.Text)
	if err != nil || heard.Text != "what time is it" {
		t.Errorf("sphinx hears %q, %v", heard.Text, err)
	}
}
