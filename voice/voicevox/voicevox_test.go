package voicevox_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
	"perch/voice/voicevox"
	"perch/voice/voicevox/voicevoxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, o voicevox.Options) (*voicevoxtest.Server, *voicevox.Engine) {
	t.Helper()
	f := voicevoxtest.Start(t)
	o.URL = f.URL
	e, err := voicevox.New(o)
	must.Succeed(t, err)
	t.Cleanup(e.Close)
	return f, e
}

func say(t *testing.T, e *voicevox.Engine, text string, o voice.Options) (samples int, err error) {
	t.Helper()
	pcm, err := voicetest.Synthesize(t, e, text, o)
	return len(pcm), err
}

// TestSynthesize checks the requests for a text: both calls have the same style, and synthesis gets
// the response to audio_query with the configured speed and the format, and otherwise unchanged.
func TestSynthesize(t *testing.T) {
	f, e := start(t, voicevox.Options{Speed: 150, Pitch: -5})
	for range 2 {
		if n, err := say(t, e, "こんにちは。", voice.Options{Language: "ja-JP"}); err != nil || n != 2400 || e.Name() != "voicevox" {
			t.Errorf("%d samples, %v", n, err)
		}
	}
	want := []string{"GET /speakers", "POST /audio_query 3 こんにちは。", "POST /synthesis 3"}
	want = append(want, want[1:]...) // the styles are requested only once
	if got := strings.Join(f.Asked(), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("it was asked\n%s", got)
	}
	if query := f.Query(); query["speedScale"] != 1.5 || query["pitchScale"] != -0.05 || query["outputSamplingRate"] != 24000.0 ||
		query["outputStereo"] != false || query["pauseLengthScale"] != 1.0 || query["accent_phrases"] == nil {
		t.Errorf("synthesis is asked with %v", query)
	}
	f.Rate = 48000
	if n, err := say(t, e, "はい", voice.Options{}); err != nil || n < 2300 || n > 2500 {
		t.Errorf("sound of 48 kHz: %d samples, %v", n, err)
	}
}

// TestVoices checks the list of voices, and that the voice of a call replaces the configured voice,
// unless it is not the ID of a style.
func TestVoices(t *testing.T) {
	_, lister := start(t, voicevox.Options{})
	if list, err := lister.Voices(t.Context()); err != nil || len(list) != 6 || list[1] != (voice.Named{Name: "1", Title: "ずんだもん（あまあま）"}) {
		t.Errorf("it lists %v; %v", list, err)
	}
	f, e := start(t, voicevox.Options{Voice: "1"})
	for asked, spoke := range map[string]string{"": "1", "3": "3", "en-us": "1", "../x": "1", "8": "8"} {
		_, err := say(t, e, "はい", voice.Options{Voice: asked})
		if requests := f.Asked(); err != nil || len(requests) != 2 || requests[1] != "POST /synthesis "+spoke {
			t.Errorf("voice %q: %v, %v", asked, requests, err)
		}
	}
}

// TestRejectedTexts checks that another language is an error that wraps voice.ErrLanguage, and that
// a text without words makes no sound.
func TestRejectedTexts(t *testing.T) {
	f, e := start(t, voicevox.Options{Voice: "3", Language: "en"})
	for _, o := range []voice.Options{{}, {Language: "zh-Hans"}} {
		if _, err := say(t, e, "Hello.", o); !errors.Is(err, voice.ErrLanguage) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	japanese := voice.Options{Language: "ja"}
	if n, err := say(t, e, " \n", japanese); n > 0 || err != nil || len(f.Asked()) > 0 {
		t.Errorf("a blank text: %d samples, %v", n, err)
	}
	if _, err := say(t, e, strings.Repeat("あ", 1001), japanese); err == nil || len(f.Asked()) > 0 {
		t.Errorf("too long a text: %v", err)
	}
	f.Phrases = ""
	if n, err := say(t, e, "😊", japanese); n > 0 || err != nil || len(f.Asked()) != 1 {
		t.Errorf("without words: %d samples, %v", n, err)
	}
	stop := errors.New("stop")
	f.Phrases = voicevoxtest.Phrase
	if err := e.Synthesize(t.Context(), "はい", japanese, func([]int16) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("its output is not read: %v", err)
	}
}

// TestFaces checks in which style each face is spoken: the style of the speaker that suits the face, unless the owner
// has chosen another style than the speaker's first, or the styles of the faces.
func TestFaces(t *testing.T) {
	type faces map[string]string // the number of the style that is expected for each face
	for name, c := range map[string]struct {
		o     voicevox.Options
		voice string // voice of the call
		want  faces
	}{
		"first style":       {voicevox.Options{Voice: "3"}, "", faces{"": "3", "neutral": "3", "thinking": "3", "happy": "1", "loving": "1", "crying": "76", "sad": "76", "angry": "7", "icon": "3"}},
		"no voice":          {voicevox.Options{}, "", faces{"": "3", "happy": "1"}},
		"another style":     {voicevox.Options{Voice: "22"}, "", faces{"happy": "22", "sad": "22"}},
		"the call's":        {voicevox.Options{Voice: "8"}, "3", faces{"": "3", "happy": "1"}},
		"one style":         {voicevox.Options{Voice: "8"}, "", faces{"": "8", "happy": "8", "angry": "8"}},
		"the owner's":       {voicevox.Options{Voice: "1", Styles: map[string]string{"sad": "ささやき", "angry": "ない", "happy": ""}}, "", faces{"sad": "22", "angry": "1", "happy": "1", "": "1"}},
		"none":              {voicevox.Options{Voice: "3", Styles: map[string]string{}}, "", faces{"happy": "3", "sad": "3"}},
		"unknown to server": {voicevox.Options{Voice: "3"}, "8", faces{"happy": "8"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, e := start(t, c.o)
			for face, number := range c.want {
				f.Asked()
				_, err := say(t, e, "はい", voice.Options{Voice: c.voice, Emotion: face})
				if asked := f.Asked(); err != nil || !slices.Contains(asked, "POST /audio_query "+number+" はい") || asked[len(asked)-1] != "POST /synthesis "+number {
					t.Errorf("%q, which has style %s, is spoken by %v, %v", face, number, asked, err)
				}
			}
		})
	}
	for _, face := range agent.Emotions() {
		if err := (voicevox.Options{Styles: map[string]string{face.Name: "ノーマル"}}).Check(); err != nil {
			t.Error(err)
		}
	}
	if err := (voicevox.Options{Styles: map[string]string{"merry": "喜び"}}).Check(); err == nil || !strings.Contains(err.Error(), `styles has a face "merry", but the faces are angry, `) {
		t.Error(err)
	}
}

// TestUnknownNameOfAStyle checks that Check names the styles of the speaker if the owner's name of a style is unknown,
// and that the face is spoken in the voice's own style.
func TestUnknownNameOfAStyle(t *testing.T) {
	_, e := start(t, voicevox.Options{Voice: "3", Styles: map[string]string{"happy": "あまあま", "sad": "なみた"}})
	err := e.Check(t.Context())
	if !errors.Is(err, voicevox.ErrNoStyle) || !strings.Contains(err.Error(), "styles has sad: なみた; ずんだもん has 3 ずんだもん（ノーマル）, 1 ずんだもん（あまあま）, ") {
		t.Error(err)
	}
}

// TestASpeakerThatVanished checks the error if the server no longer has the style, and that the cached speakers do not
// hide new ones.
func TestASpeakerThatVanished(t *testing.T) {
	f, e := start(t, voicevox.Options{Voice: "3"})
	for _, o := range []voice.Options{{Emotion: "happy"}, {}} {
		f.Speakers = voicevoxtest.Speakers
		if _, err := say(t, e, "はい", o); err != nil {
			t.Fatal(err)
		}
		f.Speakers = `[{"name":"春日部つむぎ","styles":[{"name":"ノーマル","id":8}]}]`
		_, err := say(t, e, "はい", o)
		voicetest.Sentence(t, err, "has no style", "; set voice to one that it has: 8 春日部つむぎ（ノーマル）")
	}
	if _, err := say(t, e, "はい", voice.Options{Voice: "8"}); err != nil {
		t.Error(err)
	}
	f.Speakers = `[{"name":"新しい人","styles":[{"name":"ノーマル","id":9}]}]`
	if _, err := say(t, e, "はい", voice.Options{Voice: "9", Emotion: "happy"}); err != nil {
		t.Error(err)
	}
}

// TestCredit checks that the status names the speaker as the licences of VOICEVOX's voices ask for, once the server
// has told the names.
func TestCredit(t *testing.T) {
	f, e := start(t, voicevox.Options{Voice: "8"})
	if got := e.StatusText(); got != f.URL {
		t.Errorf("before the check: %s", got)
	}
	for range 2 {
		must.Succeed(t, e.Check(t.Context()))
	}
	if got := e.StatusText(); got != f.URL+"; where its voice is published, credit it: VOICEVOX:春日部つむぎ" {
		t.Error(got)
	}
	if got := f.Asked(); !slices.Equal(got, []string{"GET /speakers", "GET /engine_manifest", "GET /speakers"}) {
		t.Errorf("it was asked %v", got)
	}
	old, unnamed := start(t, voicevox.Options{})
	old.Manifest = false
	must.Succeed(t, unnamed.Check(t.Context()))
	if got := unnamed.StatusText(); got != old.URL {
		t.Errorf("a server without a manifest: %s", got)
	}
}

// TestCheck checks that Check returns an error if the server does not have the style.
func TestCheck(t *testing.T) {
	for id, want := range map[string]string{"": "", "1": "", "3": "", "3009": "has no style 3009; set voice to one that it has: 3 ずんだもん（ノーマル）, ", "77": "has no style 77"} {
		_, e := start(t, voicevox.Options{Voice: id})
		if err := e.Check(t.Context()); want != "" {
			voicetest.Sentence(t, err, want, "VOICEVOX at http://127.0.0.1:")
		} else if err != nil {
			t.Errorf("style %q: %v", id, err)
		}
	}
	f, e := start(t, voicevox.Options{})
	f.Fails["/speakers"] = 500
	voicetest.Sentence(t, e.Check(t.Context()), "has failed (HTTP 500: エンジンの都合)")
	_, err := say(t, e, "はい", voice.Options{})
	voicetest.Sentence(t, err, "has failed (HTTP 500")
}

// TestInvalidAnswers checks the errors for responses that are not a list of speakers, a query or a
// WAV.
func TestInvalidAnswers(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"a page":          {"<html>", "is not a query; check the url"},
		"another's query": {`{"detail":"ok"}`, "is not a query; check the url"},
		"too much":        {strings.Repeat(" ", 1<<20+1), "an answer that is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.body) }))
			t.Cleanup(server.Close)
			e, err := voicevox.New(voicevox.Options{URL: server.URL, Voice: "3"})
			must.Succeed(t, err)
			t.Cleanup(e.Close)
			_, err = say(t, e, "はい", voice.Options{})
			voicetest.Sentence(t, err, c.want)
			if err := e.Check(t.Context()); name == "a page" {
				voicetest.Sentence(t, err, "is not a list of speakers")
			}
		})
	}
	f, e := start(t, voicevox.Options{Voice: "3"})
	f.Fails["/synthesis"] = 422
	_, err := say(t, e, "はい", voice.Options{})
	voicetest.Sentence(t, err, "refuses the request (HTTP 422: エンジンの都合)")
	f.Fails["/synthesis"] = 200
	_, err = say(t, e, "はい", voice.Options{})
	voicetest.Sentence(t, err, "although wav was requested")
}

// TestOptions checks that New rejects invalid options.
func TestOptions(t *testing.T) {
	for name, o := range map[string]voicevox.Options{"a name": {Voice: "ずんだもん"}, "a path": {Voice: "../3"}, "slow": {Speed: 20}, "fast": {Speed: 201}, "deep": {Pitch: -16}, "high": {Pitch: 16},
		"no address": {URL: "tcp://x"}} {
		if _, err := voicevox.New(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	var s any = voicevox.Options{}
	if speaks := s.(interface{ Speaks(string) bool }).Speaks; !speaks("ja") || speaks("en") {
		t.Error("it speaks another language than Japanese")
	}
}
