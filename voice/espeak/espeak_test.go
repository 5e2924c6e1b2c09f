package espeak_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/must"
	"perch/voice"
	"perch/voice/espeak"
	"perch/voice/voicetest"
)

// serves is the argument that makes this test program call Serve, as the child process of an engine.
const serves = "serve-the-test"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serves {
		if err := espeak.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func engine(t testing.TB, o espeak.Options) *espeak.Engine {
	t.Helper()
	if o.Command == nil {
		o.Command = []string{"/proc/self/exe", serves}
	}
	e, err := espeak.New(o)
	must.Succeed(t, err)
	t.Cleanup(e.Close)
	return e
}

// script returns the command of a shell script that replaces the child process.
func script(t testing.TB, text string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	must.Succeed(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	return []string{path}
}

// samples returns the number of samples in the sound of a text.
func samples(t testing.TB, e *espeak.Engine, text string) (int, error) {
	t.Helper()
	pcm, err := voicetest.Synthesize(t, e, text, voice.Options{})
	return len(pcm), err
}

// processes returns the child processes of this test.
func processes(t testing.TB) (all []int) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	must.Succeed(t, err)
	for _, list := range lists {
		text, _ := os.ReadFile(list) // fails if the thread has ended
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			must.Succeed(t, err)
			all = append(all, pid)
		}
	}
	return all
}

func TestSynthesize(t *testing.T) {
	e := engine(t, espeak.Options{})
	pcm, err := voicetest.Synthesize(t, e, "-h It is twenty past three.", voice.Options{})
	must.Succeed(t, err)
	length := time.Duration(len(pcm)) * time.Second / voice.SpeakerRate
	if loud := voicetest.RMS(pcm); length < time.Second || length > 4*time.Second || loud < 500 {
		t.Errorf("%s of sound at RMS %.0f", length, loud)
	}
}

func TestProgramStopsWhenItsOutputIsNotRead(t *testing.T) {
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

// TestConcurrentTexts checks that one process speaks all concurrent texts completely, and that a
// slow listener does not delay the others.
func TestConcurrentTexts(t *testing.T) {
	e := engine(t, espeak.Options{})
	must.Succeed(t, e.Warm(t.Context()))
	begun, others := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		first := true
		if err := e.Synthesize(t.Context(), "This one listens when all others are done.", voice.Options{}, func([]int16) error {
			if first {
				first = false
				close(begun)
				<-others
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-begun
	var some sync.WaitGroup
	for i := range 50 {
		some.Go(func() {
			switch n, err := samples(t, e, strings.Repeat("one two three ", 1+i%5)); {
			case err != nil:
				t.Error(err)
			case n < (1+i%5)*voice.SpeakerRate*6/10 || n > (1+i%5)*voice.SpeakerRate*2:
				t.Errorf("%d samples for %d words", n, 3*(1+i%5))
			}
		})
	}
	some.Wait()
	close(others)
	all.Wait()
	if running := processes(t); len(running) != 1 {
		t.Errorf("%d processes speak", len(running))
	}
	e.Close()
	if running := processes(t); len(running) != 0 {
		t.Errorf("closed, %d processes are left", len(running))
	}
	if _, err := samples(t, e, "hello"); !errors.Is(err, voice.ErrUnavailable) {
		t.Errorf("closed, it says %v", err)
	}
}

// TestHangingProgram checks that a child process that hangs is killed, and that the next text is
// spoken.
func TestHangingProgram(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must.Succeed(t, err)
	hung := filepath.Join(t.TempDir(), "hung")
	e := engine(t, espeak.Options{Command: script(t, "[ -e "+hung+" ] && exec "+self+" "+serves+
		"\ntouch "+hung+`; printf '\042\126\000\000'; exec sleep 60`)})
	if err := e.Warm(t.Context()); err == nil {
		t.Error("it says that it is ready")
	}
	if n, err := samples(t, e, "hello"); err != nil || n == 0 {
		t.Errorf("behind it: %d samples, %v", n, err)
	}
}

// TestProcessThatEnds checks that after the child process was killed, the next text starts a new
// process.
func TestProcessThatEnds(t *testing.T) {
	e := engine(t, espeak.Options{})
	for range 3 {
		if n, err := samples(t, e, "hello"); err != nil || n == 0 {
			t.Fatalf("%d samples, %v", n, err)
		}
		for _, pid := range processes(t) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		if _, err := samples(t, e, "hello"); err == nil || !strings.Contains(err.Error(), "espeak-ng: ") {
			t.Errorf("killed, it says %v", err)
		}
	}
}

// TestLongText checks that a text longer than maxPiece is spoken completely.
func TestLongText(t *testing.T) {
	e := engine(t, espeak.Options{})
	one, err := samples(t, e, strings.Repeat("and so on ", 10))
	must.Succeed(t, err)
	for _, between := range []string{"", ".\n"} {
		all, err := samples(t, e, strings.Repeat(strings.Repeat("and so on ", 10)+between, 10))
		if ratio := float64(all) / float64(one); err != nil || ratio < 9.5 || ratio > 10.5 {
			t.Errorf("ten times a text is %.1f times as long: %v", ratio, err)
		}
	}
}

func TestUnusablePrograms(t *testing.T) {
	// begins writes the sample rate and reads a request; the response of the program follows.
	const begins = `printf '\042\126\000\000'; head -n 1 >/dev/null; `
	for text, want := range map[string]string{
		"echo broken >&2; exit 1":                                           "espeak-ng: broken: exit status 1",
		`printf '\000\000\000\000libespeak-ng.so.1: cannot open\n'`:         "espeak-ng: libespeak-ng.so.1: cannot open; sudo apt install espeak-ng",
		begins + "echo cracked >&2; kill -SEGV $$":                          "espeak-ng: cracked: signal: segmentation fault",
		begins + `printf '\377\377\377\377'`:                                "a piece of sound of 4294967295 bytes",
		begins + `printf '\000\000\000\000it cannot\n'; cat`:                "espeak-ng: it cannot",
		begins + `while printf '\004\000\000\000abcd'; do true; done`:       voice.ErrEndless.Error(),
		begins + `printf '\004\000\000\000abcd\004\000'`:                    "unexpected EOF",
		begins + `printf '\000\000\000\000'; head -c 100000 /dev/zero; cat`: "a line without an end",
	} {
		e := engine(t, espeak.Options{Command: script(t, text)})
		if _, err := samples(t, e, "hello"); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1200 {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := samples(t, engine(t, espeak.Options{Command: []string{"/no/such/program"}}), "hello"); !errors.Is(err, voice.ErrUnavailable) {
		t.Errorf("no program: %v", err)
	}
	for _, o := range []espeak.Options{{Voice: "--help"}, {Voice: "../x"}, {Speed: 5}} {
		if _, err := espeak.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	t.Setenv("PATH", t.TempDir())
	missing := engine(t, espeak.Options{})
	for _, err := range []error{missing.Check(t.Context()), missing.Warm(t.Context()), missing.Synthesize(t.Context(), "x", voice.Options{}, nil)} {
		if !errors.Is(err, voice.ErrUnavailable) || !strings.Contains(err.Error(), "apt install espeak-ng") {
			t.Errorf("it is not installed: %v", err)
		}
	}
}

// TestAnotherLanguageHasItsVoice checks which voice is used for calls in several languages, with and
// without Options.Voice.
func TestAnotherLanguageHasItsVoice(t *testing.T) {
	self, err := os.Executable()
	must.Succeed(t, err)
	asked := filepath.Join(t.TempDir(), "asked")
	noting := script(t, "tee -a "+asked+" | "+self+" "+serves)
	usual := engine(t, espeak.Options{Command: noting, Voice: "en-us", Language: "en"})
	for _, o := range []voice.Options{{}, {Language: "en-GB"}, {Language: "de-AT"}, {Language: "de", Voice: "fr-fr"}, {Language: "--x"}} {
		if _, err := voicetest.Synthesize(t, usual, "Hallo.", o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, o := range []espeak.Options{{Command: noting, Voice: "en-us"}, {Command: noting}, {Command: noting, Language: "es"}} {
		if _, err := voicetest.Synthesize(t, engine(t, o), "Hallo.", voice.Options{Language: "de"}); err != nil {
			t.Error(err)
		}
	}
	spanish := engine(t, espeak.Options{Command: noting, Language: "es"})
	for _, o := range []voice.Options{{}, {Language: "zh-Hans"}, {Language: "en-GB"}} {
		if _, err := voicetest.Synthesize(t, spanish, "Hola.", o); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"en-us", "cmn", "fr-fr+f2"} { // Options.Voice may be a voice for another language than Options.Language
		german := engine(t, espeak.Options{Command: noting, Voice: name, Language: "de"})
		for _, o := range []voice.Options{{}, {Language: "zh-CN"}, {Language: "fr"}} {
			if _, err := voicetest.Synthesize(t, german, "Hallo.", o); err != nil {
				t.Error(err)
			}
		}
	}
	text, err := os.ReadFile(asked)
	var got []string
	for line := range strings.Lines(string(text)) {
		var r struct{ Voice string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Error(err)
		}
		got = append(got, r.Voice)
	}
	if got := strings.Join(got, " "); err != nil ||
		got != "en-us en-us de fr-fr en-us en-us de de es cmn-latn-pinyin en-us "+
			"de cmn-latn-pinyin fr de cmn fr de cmn-latn-pinyin fr-fr+f2" {
		t.Errorf("the voices are %q, %v", got, err)
	}
}

// TestUnreadableText checks that texts are refused for which espeak-ng would say "Chinese letter" for
// each kanji, or "Japanese letter" for each kana.
func TestUnreadableText(t *testing.T) {
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
		{"The sign says 三.", voice.Options{Language: "en"}, false},
		{"Hello.", voice.Options{Language: "qq"}, false},
	} {
		pcm, err := voicetest.Synthesize(t, engine(t, espeak.Options{Language: "en"}), c.text, c.o)
		if errors.Is(err, voice.ErrLanguage) == c.reads || (len(pcm) > 0) != c.reads {
			t.Errorf("%q, %+v: %d samples, %v", c.text, c.o, len(pcm), err)
		}
	}
	e := engine(t, espeak.Options{Language: "en"})
	if err := e.Synthesize(t.Context(), "Hello.", voice.Options{Voice: "qq"}, nil); err == nil || errors.Is(err, voice.ErrLanguage) {
		t.Errorf("a voice that is not there: %v", err)
	}
	if n, err := samples(t, e, "Hello."); err != nil || n == 0 {
		t.Errorf("after it: %d samples, %v", n, err)
	}
}

// TestVoices checks the order of the voices, and that each voice can speak.
func TestVoices(t *testing.T) {
	for _, test := range []struct {
		o    espeak.Options
		want []string
	}{
		{espeak.Options{Language: "en"}, []string{"en-us", "en-us+f3", "en-us+m1", "en-gb", "de"}},
		{espeak.Options{Language: "de"}, []string{"de", "de+f3", "de+m1", "en-gb"}},
		{espeak.Options{Language: "en", Voice: "en+f2"}, []string{"en+f2", "en-gb", "de"}},
	} {
		o, want := test.o, test.want
		e := engine(t, o)
		list, err := e.Voices(t.Context())
		must.Succeed(t, err)
		at := 0
		for _, v := range voice.ShortList(list) {
			if at < len(want) && v.Name == want[at] {
				at++
			}
		}
		if at < len(want) || list[0].Name != want[0] || len(list) < 100 {
			t.Errorf("%+v: %q is not in its place of %q", o, want[at:], list)
		}
	}
}
