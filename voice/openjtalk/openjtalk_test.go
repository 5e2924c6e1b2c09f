package openjtalk_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/must"
	"perch/voice"
	"perch/voice/openjtalk"
	"perch/voice/voicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func engine(t testing.TB, o openjtalk.Options) *openjtalk.Engine {
	t.Helper()
	e, err := openjtalk.New(o)
	must.Succeed(t, err)
	return e
}

// speak returns the sound of a text.
func speak(t testing.TB, e *openjtalk.Engine, text string, o voice.Options) (pcm []int16, err error) {
	t.Helper()
	if err := e.Check(t.Context()); err != nil {
		t.Fatal(err) // make test installs open_jtalk
	}
	return voicetest.Synthesize(t, e, text, o)
}

func length(pcm []int16) time.Duration {
	return time.Duration(len(pcm)) * time.Second / voice.SpeakerRate
}

func TestSynthesize(t *testing.T) {
	pcm, err := speak(t, engine(t, openjtalk.Options{}), "今は三時二十分です。", voice.Options{Language: "ja-JP"})
	must.Succeed(t, err)
	t.Logf("%s at RMS %.0f", length(pcm), voicetest.RMS(pcm))
	if l := length(pcm); l < 1500*time.Millisecond || l > 4*time.Second || voicetest.RMS(pcm) < 500 {
		t.Errorf("%s of sound at RMS %.0f", l, voicetest.RMS(pcm))
	}
}

// TestLongTextIsSpokenWhole checks that a long text is spoken sentence by sentence: the program
// reads only one line, and crashes if the line has 342 letters.
func TestLongTextIsSpokenWhole(t *testing.T) {
	dir := t.TempDir()
	noting := filepath.Join(dir, "noting")
	script := "#!/bin/sh\ntext=$(cat)\nprintf '%s\\n' \"$text\" >>" + dir + "/said\nprintf %s \"$text\" | open_jtalk \"$@\"\n"
	must.Succeed(t, os.WriteFile(noting, []byte(script), 0o700))
	e, said := engine(t, openjtalk.Options{Program: noting}), func() int {
		text, _ := os.ReadFile(dir + "/said") // fails before the first call
		return strings.Count(string(text), "\n")
	}
	text, first := strings.Repeat("きょうはよいてんきです。\n", 2)+strings.Repeat("、", 150)+strings.Repeat("あ", 30), 0
	must.Succeed(t, e.Check(t.Context()))
	sound := time.Duration(0)
	if err := e.Synthesize(t.Context(), text, voice.Options{}, func(p []int16) error {
		if first == 0 {
			first = said()
		}
		sound += length(p)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if first != 1 || said() != 3 || sound < 6*time.Second {
		t.Errorf("%d lines before the first sound, %d in all, %s of sound", first, said(), sound)
	}
}

// TestHostileTexts checks that unusual texts cause no error, and that their readable parts are
// spoken.
func TestHostileTexts(t *testing.T) {
	e := engine(t, openjtalk.Options{})
	for text, sounds := range map[string]bool{
		strings.Repeat(".", 399) + "a": true,
		"-h --help /etc/passwd":        true,
		"きょうはよいてんきです。안녕하세요안녕하세요。":           true, // open_jtalk cannot read the end
		"\x00\x1b[2J\xff\xfe東\x00京\r\n\t大阪": true,
		"$(reboot) `reboot` ¥%&<>|":         true,
		strings.Repeat("゛゜", 90):            false,
		"":                                  false,
		"。、！？… 　\n\n":                       false,
		"😊🎉":                                false,
		strings.Repeat("。\n", 5000):         false,
	} {
		pcm, err := speak(t, e, text, voice.Options{Language: "ja"})
		if err != nil || sounds != (voicetest.RMS(pcm) > 300) {
			t.Errorf("%.40q: RMS %.0f, %v", text, voicetest.RMS(pcm), err)
		}
	}
}

func TestOnlyJapaneseIsAccepted(t *testing.T) {
	e := engine(t, openjtalk.Options{Language: "en"})
	for _, c := range []struct {
		text string
		o    voice.Options
	}{{"Hello.", voice.Options{}}, {"こんにちは", voice.Options{Language: "zh-Hans"}}, {"안녕하세요", voice.Options{Language: "ja"}}} {
		if pcm, err := speak(t, e, c.text, c.o); !errors.Is(err, voice.ErrLanguage) || len(pcm) > 0 {
			t.Errorf("%q, %+v: %d samples, %v", c.text, c.o, len(pcm), err)
		}
	}
}

func TestProgramStopsWhenItsOutputIsNotRead(t *testing.T) {
	e, stop := engine(t, openjtalk.Options{}), errors.New("stop")
	if err := e.Synthesize(t.Context(), "もしもし。", voice.Options{}, func([]int16) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("Synthesize returned %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := e.Synthesize(ctx, strings.Repeat("今日はよい天気です。", 100), voice.Options{}, func([]int16) error { cancel(); return ctx.Err() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestMissingFiles checks that the error names exactly the packages that are missing.
func TestMissingFiles(t *testing.T) {
	none := t.TempDir()
	for want, o := range map[string]openjtalk.Options{
		"apt install open-jtalk":                  {Program: "no-such-program"},
		"apt install open-jtalk-mecab-naist-jdic": {Dictionary: none},
		"apt install hts-voice-nitech-jp-atr503-m001; hts-voice-nitech-jp-atr503-m001 is in Debian's contrib": {Folders: []string{none}},
		"apt install open-jtalk open-jtalk-mecab-naist-jdic hts-voice-nitech-jp-atr503-m001; hts-voice-nitech-jp-atr503-m001 is in Debian's contrib": {
			Program: "no-such-program", Dictionary: none, Folders: []string{none}},
		"no voice mei_normal.htsvoice": {Voice: "mei_normal"},
	} {
		e := engine(t, o)
		for _, err := range []error{e.Check(t.Context()), e.Synthesize(t.Context(), "はい", voice.Options{}, nil)} {
			if !errors.Is(err, voice.ErrUnavailable) || !strings.HasSuffix(err.Error()+" ", want+" ") && !strings.Contains(err.Error(), want+", ") &&
				!strings.Contains(err.Error(), want+" in ") && !strings.Contains(err.Error(), want+" which") {
				t.Errorf("not %q: %v", want, err)
			}
		}
	}
	for _, o := range []openjtalk.Options{{Voice: "../x"}, {Voice: "*"}, {Voice: "--help"}, {Speed: 20}, {Speed: 201}} {
		if _, err := openjtalk.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestVoices checks the list of voices and which voice file is used: the named voice, or the default
// voice if the name is missing or invalid.
func TestVoices(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "noting")
	must.Succeed(t, os.WriteFile(file, []byte("#!/bin/sh\necho \"$4 $6\" >>"+dir+"/voices\nexec open_jtalk \"$@\"\n"), 0o700))
	usual := "/usr/share/hts-voice/nitech-jp-atr503-m001/nitech_jp_atr503_m001.htsvoice"
	for _, name := range []string{"aaa", "mei"} {
		must.Succeed(t, os.Symlink(usual, filepath.Join(dir, name+".htsvoice")))
	}
	e := engine(t, openjtalk.Options{Program: file, Folders: []string{dir, "/usr/share/hts-voice"}})
	if list, err := e.Voices(t.Context()); err != nil || !slices.Equal(list, []voice.Named{{Name: "aaa"}, {Name: "mei"}, {Name: "nitech_jp_atr503_m001"}}) {
		t.Errorf("it lists %v; %v", list, err)
	}
	slow, err := speak(t, e, "はい、そうです。", voice.Options{})
	must.Succeed(t, err)
	fast, err := speak(t, engine(t, openjtalk.Options{Program: file, Folders: []string{dir}, Speed: 200}), "はい、そうです。", voice.Options{Voice: "../mei"})
	if err != nil || len(fast) > len(slow)*2/3 {
		t.Errorf("%s at 100 percent, %s at 200, %v", length(slow), length(fast), err)
	}
	if _, err := speak(t, e, "はい。", voice.Options{Voice: "mei"}); err != nil {
		t.Error(err)
	}
	if _, err := speak(t, e, "はい。", voice.Options{Voice: "nobody"}); !errors.Is(err, voice.ErrUnavailable) || errors.Is(err, voice.ErrLanguage) {
		t.Errorf("a voice that is not there: %v", err)
	}
	text, err := os.ReadFile(dir + "/voices")
	want := usual + " 1.00\n" + dir + "/aaa.htsvoice 2.00\n" + dir + "/mei.htsvoice 1.00\n"
	if err != nil || string(text) != want {
		t.Errorf("%v\n%s", err, text)
	}
}
