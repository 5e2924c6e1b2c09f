package engines

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perch/agent/reflex"
	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/device"
	"perch/language"
	"perch/must"
	"perch/voice"
	"perch/voice/openjtalk"
	"perch/voice/sphinx"
)

// TestSixLanguagesAreSpoken: the embedded synthesizers speak all languages of Perch, and the embedded recognizer
// understands English. Recognizers for the other languages need a model that is not part of Perch.
func TestSixLanguagesAreSpoken(t *testing.T) {
	c := config.Default()
	c.Speech.Synthesizers = append([]config.Engine{{Kind: "openjtalk", Options: &openjtalk.Options{}}}, c.Speech.Synthesizers...)
	e := must.Value(New(nil, &c, drivers.Brain{}, nil, nil, slog.New(slog.DiscardHandler)))(t)
	defer e.Close()
	var words language.Catalogue
	speak := func(tag, text string) (pcm []int16) {
		t.Helper()
		err := e.Synthesizers.Synthesize(t.Context(), text, voice.Options{Language: tag}, func(p []int16) error {
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
	heard, err := e.Recognizers.Recognize(t.Context(), u, voice.Options{Language: "en"})
	t.Logf("sphinx hears %q", heard.Text)
	if err != nil || heard.Text != "what time is it" {
		t.Errorf("sphinx hears %q, %v", heard.Text, err)
	}
}

// TestLogNamesUnheardSentences: the embedded recognizer logs that it understands only English, and which of the
// owner's sentences it cannot understand.
func TestLogNamesUnheardSentences(t *testing.T) {
	for name, c := range map[string]struct{ language, own, want string }{
		"English":        {"en-GB", "{tea: {sentences: [more tea], answer: Yes.}}", ""},
		"German":         {"de-AT", "", `listens for the English sentences; add another to speech.recognizers" language=de-AT`},
		"without a book": {"it", "", `language=it`},
		"a Japanese word": {"en", "{tea: {sentences: [more tea, お茶], answer: Yes.}}",
			`does not listen for sentences with non-ASCII letters" places=[own.yaml:1] count=1`},
		"many of them":     {"en", "{tea: {sentences: [" + strings.Repeat("茶, ", 11) + "お茶], answer: Yes.}}", "count=12"},
		"all are English ": {"en", "", ""},
	} {
		own := ""
		if c.own != "" {
			own = filepath.Join(t.TempDir(), "own.yaml")
			must.Succeed(t, os.WriteFile(own, []byte("intents: "+c.own), 0o600))
		}
		said := config.Default()
		said.Language, said.Brains = config.Languages(c.language), []config.Engine{{Kind: "reflex", Options: &reflex.Keys{Sentences: own}}}
		book, err := config.Book(&said)
		must.Succeed(t, err)
		var log bytes.Buffer
		_, err = drivers.Recognizers().New("sphinx", &sphinx.Keys{},
			drivers.Voice{Setup: voice.Setup{Language: c.language, Log: slog.New(slog.NewTextHandler(&log, nil))}, Book: book})
		must.Succeed(t, err)
		if got := log.String(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Count(got, "own.yaml:") > 10 {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestLanguagesOfRobots: a robot may have any language. Each language that no engine supports is reported once, with
// a remedy.
func TestLanguagesOfRobots(t *testing.T) {
	c := config.Default()
	c.Language = "en, fr"
	for tags, want := range map[string]string{
		"":               "",
		"en-GB fr-CA":    "",
		"de":             `no recognizer supports "de": sphinx supports only English; add one of kind wyoming to speech.recognizers`,
		"de-AT de-CH de": `no recognizer supports "de"`,
		"it":             `what Perch says by itself is English where people speak "it"`,
		"de ja":          `no recognizer supports "ja"`,
	} {
		got := c.Lacks(strings.Fields(tags)...)
		if all := strings.Join(got, "; "); (all == "") != (want == "") || !strings.Contains(all, want) || strings.Count(all, `hears "de"`) > 1 {
			t.Errorf("%s: %q", tags, got)
		}
		for _, tag := range strings.Fields(tags) {
			if unfit := c.Unfit(device.Settings{Language: tag}); len(unfit) > 0 {
				t.Errorf("%s is refused: %v", tag, unfit)
			}
		}
	}
}
