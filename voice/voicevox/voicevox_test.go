package voicevox_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
	"perch/voice/voicevox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// speakers is a shortened response of VOICEVOX 0.25 to /speakers.
const speakers = `[
	{"name":"波音リツ","speaker_uuid":"b1a81618-b27b-40d2-b0ea-27a9ad408c4b","version":"0.16.2","supported_features":{},
	 "styles":[{"name":"歌","id":3009,"type":"frame_decode"}]},
	{"name":"ずんだもん","speaker_uuid":"388f246b-8c41-4ac1-8e2d-5d79f3ff56d9","version":"0.16.2","supported_features":{"permitted_synthesis_morphing":"ALL"},
	 "styles":[{"name":"ノーマル","id":3,"type":"talk"},{"name":"あまあま","id":1}]}]`

// fake is a server with VOICEVOX's API.
type fake struct {
	t      *testing.T
	asked  []string       // methods, paths and queries
	query  map[string]any // body of the latest request for synthesis
	phrase string         // accent phrases in the response to audio_query
	rate   int            // rate of the sound, regardless of the requested rate
	fails  map[string]int // statuses of failing requests; key: path
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked = append(f.asked, r.Method+" "+r.URL.Path+"?"+r.URL.RawQuery)
	style := r.URL.Query().Get("speaker")
	switch {
	case f.fails[r.URL.Path] != 0:
		w.WriteHeader(f.fails[r.URL.Path])
		_, _ = io.WriteString(w, `{"detail":"エンジンの都合"}`)
	case r.Method == http.MethodGet && r.URL.Path == "/speakers":
		_, _ = io.WriteString(w, speakers)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		_, _ = io.WriteString(w, `{"detail":"Method Not Allowed"}`)
	case style == "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"detail":[{"type":"missing","loc":["query","speaker"],"msg":"Field required","input":null}]}`)
	case r.URL.Path == "/audio_query":
		_, _ = io.WriteString(w, `{"accent_phrases":[`+f.phrase+`],"speedScale":1.0,"pitchScale":0.0,"intonationScale":1.0,"volumeScale":1.0,
			"prePhonemeLength":0.1,"postPhonemeLength":0.1,"pauseLength":null,"pauseLengthScale":1.0,"outputSamplingRate":24000,
			"outputStereo":false,"kana":"コンニチワ'"}`)
	case r.URL.Path == "/synthesis":
		f.query = nil
		must.Succeed(f.t, json.NewDecoder(r.Body).Decode(&f.query))
		w.Header().Set("Content-Type", "audio/wav")
		_, _ = w.Write(voicetest.WAV(f.rate, voicetest.Tone(f.rate, 400, 8000, time.Second/10))) // VOICEVOX also returns 16-bit PCM
	default:
		http.NotFound(w, r)
	}
}

const phrase = `{"moras":[{"text":"コ","consonant":"k","consonant_length":0.05,"vowel":"o","vowel_length":0.1,"pitch":5.7}],"accent":1,"pause_mora":null,"is_interrogative":false}`

func start(t *testing.T, o voicevox.Options) (*fake, *voicevox.Engine) {
	t.Helper()
	f := &fake{t: t, phrase: phrase, rate: 24000, fails: map[string]int{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	o.URL = server.URL
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
	f, e := start(t, voicevox.Options{Speed: 150})
	for range 2 {
		if n, err := say(t, e, "こんにちは。", voice.Options{Language: "ja-JP"}); err != nil || n != 2400 || e.Name() != "voicevox" {
			t.Errorf("%d samples, %v", n, err)
		}
	}
	want := []string{"GET /speakers?", "POST /audio_query?speaker=3&text=%E3%81%93%E3%82%93%E3%81%AB%E3%81%A1%E3%81%AF%E3%80%82", "POST /synthesis?speaker=3"}
	want = append(want, want[1:]...) // the styles are requested only once
	if got := strings.Join(f.asked, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("it was asked\n%s", got)
	}
	if f.query["speedScale"] != 1.5 || f.query["outputSamplingRate"] != 24000.0 || f.query["outputStereo"] != false ||
		f.query["pauseLengthScale"] != 1.0 || f.query["accent_phrases"] == nil {
		t.Errorf("synthesis is asked with %v", f.query)
	}
	f.rate = 48000
	if n, err := say(t, e, "はい", voice.Options{}); err != nil || n < 2300 || n > 2500 {
		t.Errorf("sound of 48 kHz: %d samples, %v", n, err)
	}
}

// TestVoices checks the list of voices, and that the voice of a call replaces the configured voice,
// unless it is not the ID of a style.
func TestVoices(t *testing.T) {
	_, lister := start(t, voicevox.Options{})
	if list, err := lister.Voices(t.Context()); err != nil || !slices.Equal(list, []voice.Named{{Name: "3", Title: "ずんだもん（ノーマル）"}, {Name: "1", Title: "ずんだもん（あまあま）"}}) {
		t.Errorf("it lists %v; %v", list, err)
	}
	f, e := start(t, voicevox.Options{Voice: "1"})
	for asked, spoke := range map[string]string{"": "1", "3": "3", "en-us": "1", "../x": "1", "888753760": "888753760"} {
		f.asked = nil
		if _, err := say(t, e, "はい", voice.Options{Voice: asked}); err != nil || len(f.asked) != 2 || !strings.HasSuffix(f.asked[1], "speaker="+spoke) {
			t.Errorf("voice %q: %v, %v", asked, f.asked, err)
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
	if n, err := say(t, e, " \n", japanese); n > 0 || err != nil || len(f.asked) > 0 {
		t.Errorf("a blank text: %d samples, %v, %v", n, err, f.asked)
	}
	if _, err := say(t, e, strings.Repeat("あ", 1001), japanese); err == nil || len(f.asked) > 0 {
		t.Errorf("too long a text: %v", err)
	}
	f.phrase = ""
	if n, err := say(t, e, "😊", japanese); n > 0 || err != nil || len(f.asked) != 1 {
		t.Errorf("without words: %d samples, %v, %v", n, err, f.asked)
	}
	stop := errors.New("stop")
	f.phrase = phrase
	if err := e.Synthesize(t.Context(), "はい", japanese, func([]int16) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("its output is not read: %v", err)
	}
}

// TestCheck checks that Check returns an error if the server does not have the style.
func TestCheck(t *testing.T) {
	for id, want := range map[string]string{"": "", "1": "", "3": "", "3009": "has no style 3009; its /speakers", "7": "has no style 7"} {
		_, e := start(t, voicevox.Options{Voice: id})
		if err := e.Check(t.Context()); want != "" {
			voicetest.Sentence(t, err, want, "VOICEVOX at http://127.0.0.1:")
		} else if err != nil {
			t.Errorf("style %q: %v", id, err)
		}
	}
	f, e := start(t, voicevox.Options{})
	f.fails["/speakers"] = 500
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
	f.fails["/synthesis"] = 422
	_, err := say(t, e, "はい", voice.Options{})
	voicetest.Sentence(t, err, "refuses the request (HTTP 422: エンジンの都合)")
	f.fails["/synthesis"] = 200
	_, err = say(t, e, "はい", voice.Options{})
	voicetest.Sentence(t, err, "although wav was requested")
}

// TestOptions checks that New rejects invalid options.
func TestOptions(t *testing.T) {
	for name, o := range map[string]voicevox.Options{"a name": {Voice: "ずんだもん"}, "a path": {Voice: "../3"}, "slow": {Speed: 20}, "fast": {Speed: 201},
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
