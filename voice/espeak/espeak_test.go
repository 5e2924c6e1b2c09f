package espeak_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/voice"
	"perch/voice/espeak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func engine(t testing.TB, o espeak.Options) *espeak.Engine {
	t.Helper()
	e, err := espeak.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestItSpeaks(t *testing.T) {
	e := engine(t, espeak.Options{})
	var pcm []int16
	err := e.Synthesize(t.Context(), "-h It is twenty past three.", voice.Options{}, func(p []int16) error {
		pcm = append(pcm, p...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, s := range pcm {
		sum += float64(s) * float64(s)
	}
	length := time.Duration(len(pcm)) * time.Second / voice.SpeakerRate
	if loud := math.Sqrt(sum / float64(len(pcm))); length < time.Second || length > 4*time.Second || loud < 500 {
		t.Errorf("%s of sound at RMS %.0f", length, loud)
	}
}

func TestItStopsWhenItsOutputIsNotRead(t *testing.T) {
	e := engine(t, espeak.Options{})
	long := strings.Repeat("and so on ", 2000)
	stop := errors.New("stop")
	if err := e.Synthesize(t.Context(), long, voice.Options{}, func([]int16) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("Synthesize returned %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := e.Synthesize(ctx, long, voice.Options{}, func([]int16) error { cancel(); return ctx.Err() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestWhatCannotSpeak(t *testing.T) {
	missing := engine(t, espeak.Options{Program: "espeak-that-is-not-installed"})
	for _, err := range []error{missing.Check(), missing.Synthesize(t.Context(), "x", voice.Options{}, nil)} {
		if !errors.Is(err, voice.ErrUnavailable) || !strings.Contains(err.Error(), "apt install espeak-ng") {
			t.Errorf("a missing program: %v", err)
		}
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho no such voice >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := engine(t, espeak.Options{Program: broken}).Synthesize(t.Context(), "x", voice.Options{}, nil)
	if err == nil || !strings.Contains(err.Error(), "no such voice") {
		t.Errorf("a program that complains: %v", err)
	}
	for _, o := range []espeak.Options{{Voice: "--help"}, {Voice: "../x"}, {Speed: 5}} {
		if _, err := espeak.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestAnotherLanguageHasItsVoice where a call names none.
func TestAnotherLanguageHasItsVoice(t *testing.T) {
	dir := t.TempDir()
	noting := filepath.Join(dir, "noting")
	if err := os.WriteFile(noting, []byte("#!/bin/sh\necho \"$4\" >> "+dir+"/voices\nexec espeak-ng \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	usual := engine(t, espeak.Options{Program: noting, Voice: "en-us", Language: "en"})
	for _, o := range []voice.Options{{}, {Language: "en-GB"}, {Language: "de-AT"}, {Language: "de", Voice: "fr-fr"}, {Language: "--x"}} {
		if err := usual.Synthesize(t.Context(), "Hallo.", o, func([]int16) error { return nil }); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	drop := func([]int16) error { return nil }
	for _, o := range []espeak.Options{{Program: noting, Voice: "en-us"}, {Program: noting}, {Program: noting, Language: "es"}} {
		if err := engine(t, o).Synthesize(t.Context(), "Hallo.", voice.Options{Language: "de"}, drop); err != nil {
			t.Error(err)
		}
	}
	spanish := engine(t, espeak.Options{Program: noting, Language: "es"})
	for _, o := range []voice.Options{{}, {Language: "zh-Hans"}, {Language: "en-GB"}} {
		if err := spanish.Synthesize(t.Context(), "Hola.", o, drop); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"en-us", "cmn", "fr-fr+f2"} { // the appliance's voice need not be of the appliance's language
		german := engine(t, espeak.Options{Program: noting, Voice: name, Language: "de"})
		for _, o := range []voice.Options{{}, {Language: "zh-CN"}, {Language: "fr"}} {
			if err := german.Synthesize(t.Context(), "Hallo.", o, drop); err != nil {
				t.Error(err)
			}
		}
	}
	text, err := os.ReadFile(dir + "/voices")
	if got := strings.Join(strings.Fields(string(text)), " "); err != nil ||
		got != "en-us en-us de fr-fr en-us en-us de de es cmn-latn-pinyin en-us "+
			"de cmn-latn-pinyin fr de cmn fr de cmn-latn-pinyin fr-fr+f2" {
		t.Errorf("the voices are %q, %v", got, err)
	}
}

// TestWhatItCannotRead: of kanji espeak-ng would say "Chinese letter", and of kana in
// any other voice than the Japanese one "Japanese letter".
func TestWhatItCannotRead(t *testing.T) {
	for _, c := range []struct {
		text  string
		o     voice.Options
		reads bool
	}{
		{"こんにちは。", voice.Options{Language: "ja"}, true},
		{"今は三時です。", voice.Options{Language: "ja"}, false},
		{"こんにちは。", voice.Options{Language: "en"}, false},
		{"こんにちは。", voice.Options{Language: "ja", Voice: "en-us"}, false},
		{"现在三点。", voice.Options{Language: "zh-CN"}, true},
		{"現在三點。", voice.Options{Language: "yue"}, true},
		{"现在三点。", voice.Options{Language: "de"}, false},
		{"The sign says 三.", voice.Options{Language: "en"}, true},
		{"Hello.", voice.Options{Language: "qq"}, false},
	} {
		samples := 0
		count := func(pcm []int16) error { samples += len(pcm); return nil }
		err := engine(t, espeak.Options{Language: "en"}).Synthesize(t.Context(), c.text, c.o, count)
		if errors.Is(err, voice.ErrLanguage) == c.reads || (samples > 0) != c.reads {
			t.Errorf("%q, %+v: %d samples, %v", c.text, c.o, samples, err)
		}
	}
	err := engine(t, espeak.Options{Language: "en"}).Synthesize(t.Context(), "Hello.", voice.Options{Voice: "qq"}, nil)
	if err == nil || errors.Is(err, voice.ErrLanguage) {
		t.Errorf("a voice that is not there: %v", err)
	}
}
