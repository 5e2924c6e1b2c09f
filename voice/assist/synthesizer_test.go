package assist

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/limit"
	"perch/voice"
	"perch/voice/voicetest"
)

const home = `{"id":"01","name":"Home","tts_engine":"tts.piper","tts_language":"en_GB","tts_voice":"alba","stt_engine":null}`

// tone returns a WAV as ffmpeg writes it to a pipe: of unknown length, with a LIST
// chunk before the sound.
func tone(rate int, d time.Duration) []byte {
	wav := voicetest.WAV(rate, voicetest.Tone(rate, 440, 8000, d))
	out := append([]byte("RIFF\xff\xff\xff\xffWAVE"), wav[12:36]...)
	out = append(out, "LIST\x06\x00\x00\x00INFOxxdata\xff\xff\xff\xff"...)
	return append(out, wav[44:]...)
}

func gives(kind string, sound []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(sound)
	}
}

func TestSynthesize(t *testing.T) {
	for _, rate := range []int{16000, 22050, 24000, 44100} {
		h := newFakeHA(t, setUp(home))
		h.sound = gives("audio/x-wav", tone(rate, time.Second))
		s := h.synthesizer()
		pcm, err := voicetest.Synthesize(t, s, "Hello.", voice.Options{Language: "en"})
		crossings := 0
		for i := 1001; i < len(pcm)-1000; i++ { // without the ends, where the filter of the resampler rings
			if pcm[i-1] < 0 && pcm[i] >= 0 {
				crossings++
			}
		}
		if err != nil || math.Abs(float64(len(pcm)-voice.SpeakerRate)) > 100 || crossings < 402 || crossings > 405 || s.Name() != "assist" {
			t.Errorf("%d Hz: %d samples, %d crossings, %v", rate, len(pcm), crossings, err)
		}
		if _, err := voicetest.Synthesize(t, s, "Again.", voice.Options{}); err != nil || h.conns.Load() != 1 {
			t.Errorf("%v, asked for the pipeline %d times", err, h.conns.Load())
		}
	}
}

func TestRequests(t *testing.T) {
	for name, test := range map[string]struct {
		o    Options
		call voice.Options
		want string
	}{
		"the pipeline's": {Options{}, voice.Options{},
			`{"engine_id":"tts.piper","message":"Hi.","language":"en_GB","options":{"preferred_format":"wav","voice":"alba"}}`},
		"its language": {Options{}, voice.Options{Language: "en"},
			`{"engine_id":"tts.piper","message":"Hi.","language":"en_GB","options":{"preferred_format":"wav","voice":"alba"}}`},
		"another language": {Options{}, voice.Options{Language: "de"},
			`{"engine_id":"tts.piper","message":"Hi.","language":"de","options":{"preferred_format":"wav"}}`},
		"another voice": {Options{Voice: "a"}, voice.Options{Voice: "b"},
			`{"engine_id":"tts.piper","message":"Hi.","language":"en_GB","options":{"preferred_format":"wav","voice":"b"}}`},
		"an engine": {Options{Engine: "tts.cloud", Voice: "a"}, voice.Options{Language: "en-US"},
			`{"engine_id":"tts.cloud","message":"Hi.","language":"en-US","options":{"preferred_format":"wav","voice":"a"}}`},
		"converted": {Options{Engine: "tts.x", Convert: true}, voice.Options{},
			`{"engine_id":"tts.x","message":"Hi.","options":{"preferred_format":"wav","preferred_sample_bytes":2,"preferred_sample_channels":1,"preferred_sample_rate":24000}}`},
	} {
		h := newFakeHA(t, setUp(home))
		h.sound = gives("audio/x-wav", tone(24000, 20*time.Millisecond))
		s := h.synthesizer(func(o *Options) {
			o.Engine, o.Voice, o.Convert = test.o.Engine, test.o.Voice, test.o.Convert
		})
		if _, err := voicetest.Synthesize(t, s, "Hi.", test.call); err != nil || len(h.asked) != 1 || h.asked[0] != test.want {
			t.Errorf("%s: %q, %v", name, h.asked, err)
		}
	}
}

func TestTextWithoutWordsIsSilent(t *testing.T) {
	h := newFakeHA(t, nil)
	if pcm, err := voicetest.Synthesize(t, h.synthesizer(), " ... !", voice.Options{}); err != nil || pcm != nil || len(h.asked) != 0 {
		t.Errorf("%v, %q", err, h.asked)
	}
	if _, err := voicetest.Synthesize(t, h.synthesizer(), strings.Repeat("x", 4097), voice.Options{}); err == nil {
		t.Error("a text of any length is sent")
	}
}

func TestSynthesizerFailures(t *testing.T) {
	wav := tone(22050, 100*time.Millisecond)
	says := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); _, _ = io.WriteString(w, body) }
	}
	for name, test := range map[string]struct {
		pipeline       string
		address, sound http.HandlerFunc
		words          string
	}{
		"no pipeline":     {"", nil, nil, "has no such Assist pipeline"},
		"no engine":       {`{"tts_engine":null}`, nil, nil, "has no text to speech in this Assist pipeline"},
		"an odd pipeline": {`7`, nil, nil, "not part of its API"},
		"unknown engine":  {home, says(500, ""), nil, "cannot speak with tts.piper, voice alba, language en_GB; check engine"},
		"no such place":   {home, says(404, ""), nil, "has no /api/tts_get_url (HTTP 404)"},
		"a page":          {home, says(200, "<html>"), nil, "does not say where the sound is"},
		"elsewhere":       {home, says(200, `{"path":"//evil.example/api/tts_proxy/x.wav"}`), nil, "does not say where the sound is"},
		"upward":          {home, says(200, `{"path":"/api/tts_proxy/../states"}`), nil, "does not say where the sound is"},
		"endless address": {home, says(200, strings.Repeat(" ", limit.Body+1)), nil, "an answer that is too long"},
		"no sound":        {home, nil, says(500, ""), "makes no sound with tts.piper"},
		"lost":            {home, nil, says(404, ""), "has no /api/tts_proxy/x-_1.wav (HTTP 404)"},
		"nothing":         {home, nil, says(200, ""), "answers with nothing although a WAV was requested"},
		"MP3": {home, nil, gives("audio/mpeg", []byte("ID3\x04rest of it")),
			"answers with MP3 although a WAV was requested; update it, or set an engine that gives WAV"},
		"words": {home, nil, gives("text/plain", []byte("hello there")), "answers with text/plain although"},
		"bytes of 4 bits": {home, nil, gives("audio/wav", bytes.Replace(wav, []byte{2, 0, 16, 0}, []byte{1, 0, 4, 0}, 1)),
			"; set convert"},
		"silence": {home, nil, gives("audio/wav", wav[:58]), "answers without a sound; see the log of its text to speech"},
		"silent":  {home, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, nil, "did not begin to answer within 150ms"},
		"silent in sound": {home, nil, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(wav[:2000])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "fell silent for 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHA(t, setUp(test.pipeline))
			if test.address != nil {
				h.address = test.address
			}
			h.sound = test.sound
			s := h.synthesizer(func(o *Options) { o.AnswerWithin, o.IdleWithin = 150*time.Millisecond, 100*time.Millisecond })
			_, err := voicetest.Synthesize(t, s, "Hello.", voice.Options{})
			voicetest.Sentence(t, err, test.words)
			if _, fresh := s.cachedPipeline.Get(); fresh {
				t.Error("what may have changed is still taken for known")
			}
		})
	}
}

func TestTheCallerStops(t *testing.T) {
	h := newFakeHA(t, setUp(home))
	h.sound = gives("audio/wav", tone(24000, 5*time.Second))
	s := h.synthesizer()
	gone := errors.New("gone")
	if err := s.Synthesize(t.Context(), "Hi.", voice.Options{}, func([]int16) error { return gone }); err != gone {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Synthesize(ctx, "Hi.", voice.Options{}, func([]int16) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) || errors.Is(err, voice.ErrUnavailable) {
		t.Error(err)
	}
	if err := s.Synthesize(ctx, "Hi.", voice.Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.Close()
	_, err = voicetest.Synthesize(t, s, "Hi.", voice.Options{})
	voicetest.Sentence(t, err, "is closed")
}

func TestCheckOfASynthesizer(t *testing.T) {
	if err := newFakeHA(t, setUp(home)).synthesizer().Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := newFakeHA(t, setUp("{}")).synthesizer(func(o *Options) { o.Engine = "tts.piper" }).Check(t.Context()); err != nil {
		t.Error(err)
	}
	voicetest.Sentence(t, newFakeHA(t, setUp("{}")).synthesizer(func(o *Options) { o.Engine = "tts.x" }).Check(t.Context()),
		"has no text to speech called tts.x")
	voicetest.Sentence(t, newFakeHA(t, setUp("{}")).synthesizer().Check(t.Context()), "choose one under Settings")
	voicetest.Sentence(t, newFakeHA(t, nil).synthesizer(func(o *Options) { o.Token = "wrong" }).Check(t.Context()), "refuses the token")
}

func TestOptionsOfAnEngine(t *testing.T) {
	for name, o := range map[string]Options{
		"no token": {URL: "http://x:8123"}, "a deadline": {URL: "http://x:8123", Token: "x", IdleWithin: -1},
		"a long name": {URL: "http://x:8123", Token: "x", Voice: strings.Repeat("x", 201)},
	} {
		if _, err := NewSynthesizer(o); err == nil {
			t.Errorf("%s is taken", name)
		}
		if _, err := NewRecognizer(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestVoices checks that Voices returns the voices of the configured or the pipeline's engine.
func TestVoices(t *testing.T) {
	for _, list := range []string{`{"voices":[{"voice_id":"en_US-joe","name":"joe"}]}`, `{"voices":null}`} {
		h := newFakeHA(t, func(p *peer, m command) {
			if m.Type != "tts/engine/voices" || m.Engine != "tts.piper" || m.Language != "en" {
				t.Errorf("asked %+v", m)
			}
			setUp(list)(p, m)
		})
		got, err := h.synthesizer(func(o *Options) { o.Engine, o.Language = "tts.piper", "en" }).Voices(t.Context())
		if want := (voice.Named{Name: "en_US-joe", Title: "joe"}); err != nil || (len(got) == 1 && got[0] == want) != strings.Contains(list, "joe") {
			t.Errorf("%s: %v; %v", list, got, err)
		}
	}
}
