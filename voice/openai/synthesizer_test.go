package openai

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"perch/voice"
	"perch/voice/voicetest"
)

func TestSynthesizerSpeaksTheProtocol(t *testing.T) {
	var got string
	pcm := ramp(5001)
	url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" || r.URL.Path != "/v1/audio/speech" || r.URL.RawQuery != "tier=a" ||
			r.Header.Get("Authorization") != "Bearer "+canary || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s with %q", r.Method, r.URL, r.Header)
		}
		body, _ := io.ReadAll(r.Body)
		got = string(body)
		w.Header().Set("Content-Type", "audio/pcm")
		for sent := raw(pcm); len(sent) > 0; { // pieces of 1, 2, 3 ... bytes
			n := min(len(sent), 1+len(sent)%97)
			_, _ = w.Write(sent[:n])
			w.(http.Flusher).Flush()
			sent = sent[n:]
		}
	})
	s := synthesizer(t, Options{URL: url + "?tier=a", Key: canary, Model: "kokoro", Voice: "af_heart", Stream: true})
	if s.Name() != "openai" {
		t.Errorf("its name is %q", s.Name())
	}
	if received, err := voicetest.SynthesizeHello(t, s); err != nil || !slices.Equal(received, pcm) {
		t.Errorf("%d samples of %d, or others; %v", len(received), len(pcm), err)
	}
	if got != `{"model":"kokoro","input":"Hello.","voice":"af_heart","response_format":"pcm","stream":true}` {
		t.Errorf("sent %s", got)
	}
	err := synthesizer(t, Options{URL: url + "?tier=a", Key: canary}).Synthesize(t.Context(), "\"Hé\"", voice.Options{Voice: "nova"},
		func([]int16) error { return nil })
	if err != nil || got != `{"model":"tts-1","input":"\"Hé\"","voice":"nova","response_format":"pcm"}` {
		t.Errorf("sent %s; %v", got, err)
	}
}

// TestSoundIsPassedOnAsItArrives checks that sound is passed on while it arrives: the server sends the
// second piece only after the first one was passed on.
func TestSoundIsPassedOnAsItArrives(t *testing.T) {
	for name, first := range map[string][]byte{"pcm": raw(ramp(480)), "a byte too many": append(raw(ramp(480)), 7), "wav": voicetest.WAV(24000, ramp(480))} {
		received := make(chan bool)
		url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(first)
			w.(http.Flusher).Flush()
			<-received
			_, _ = w.Write(raw(ramp(480)))
		})
		n := 0
		err := synthesizer(t, Options{URL: url}).Synthesize(t.Context(), "Hello.", voice.Options{}, func(pcm []int16) error {
			if n += len(pcm); n == 480 {
				close(received)
			}
			return nil
		})
		if err != nil || n != 960 {
			t.Errorf("%s: %d samples, %v", name, n, err)
		}
	}
}

func TestOtherFormats(t *testing.T) {
	frame := append([]byte{0xff, 0xfb, 0x90, 0x00}, make([]byte, 413)...) // MPEG 1, 128 kbit/s, 44.1 kHz: 417 bytes
	lone := append([]byte{0xff, 0xfb, 0x90, 0x00}, raw(ramp(1000))...)    // sound that begins like an MP3 frame
	tests := map[string]struct {
		kind, body string
		rate       int
		samples    int
		want       string // part of the error
	}{
		"wav, 24 kHz":                 {"audio/wav", string(voicetest.WAV(24000, ramp(1000))), 0, 1000, ""},
		"wav, 16 kHz":                 {"audio/pcm", string(voicetest.WAV(16000, ramp(1600))), 0, 2400, ""},
		"wav of named channels":       {"audio/wav;channels=2;rate=3", string(voicetest.WAV(24000, ramp(1000))), 0, 1000, ""},
		"pcm of a named rate":         {"audio/pcm;rate=12000", string(raw(ramp(1200))), 0, 2400, ""},
		"pcm of a rate not to be":     {"audio/pcm;rate=3", string(raw(ramp(1200))), 0, 0, "3 samples a second"},
		"pcm of a configured rate":    {"audio/pcm", string(raw(ramp(1600))), 16000, 2400, ""},
		"pcm without a type":          {"", string(raw(ramp(1000))), 0, 1000, ""},
		"pcm that begins like mp3":    {"audio/pcm", string(lone), 0, 1002, ""},
		"half a sample":               {"audio/pcm", "\x01\x02\x03", 0, 1, ""},
		"mp3":                         {"", string(slices.Concat(frame, frame)), 0, 0, "answers with MP3"},
		"mp3 with tags":               {"audio/mpeg", "ID3\x04 and so on", 0, 0, "answers with MP3"},
		"a short mp3":                 {"audio/mpeg", string(frame[:100]), 0, 0, "answers with MP3"},
		"ogg":                         {"audio/ogg", "OggS\x00 and so on", 0, 0, "answers with Ogg"},
		"flac":                        {"audio/flac", "fLaC\x00 and so on", 0, 0, "answers with FLAC"},
		"a wav of 32 bits":            {"audio/wav", strings.Replace(string(voicetest.WAV(24000, ramp(10))), "\x10\x00data", "\x20\x00data", 1), 0, 5, ""},
		"a wav of mu-law":             {"audio/wav", strings.Replace(string(voicetest.WAV(24000, ramp(9))), "fmt \x10\x00\x00\x00\x01", "fmt \x10\x00\x00\x00\x07", 1), 0, 0, "mu-law of 16 bits"},
		"a wav that ends too soon":    {"audio/wav", "RIFF\x00\x00", 0, 0, "WAV that cannot be read"},
		"a wav without sound":         {"audio/wav", string(voicetest.WAV(24000, nil)), 0, 0, "without a sound"},
		"nothing":                     {"audio/pcm", "", 0, 0, "without a sound"},
		"one byte":                    {"audio/pcm", "x", 0, 0, "without a sound"},
		"a page":                      {"text/html", "<html>" + canary, 0, 0, "ends in /v1"},
		"an error that says it is ok": {"application/json", `{"error":{"message":"no voice for ` + canary + `"}}`, 0, 0, "no voice for [key]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Content-Type"] = []string{test.kind}
				_, _ = io.WriteString(w, test.body)
			})
			pcm, err := voicetest.SynthesizeHello(t, synthesizer(t, Options{URL: url, Key: canary, Rate: test.rate}))
			if test.want != "" {
				voicetest.Sentence(t, err, test.want)
			} else if err != nil {
				t.Error(err)
			}
			// A resampler does not return the last samples, for which its filter needs more input.
			if d := test.samples - len(pcm); d < 0 || d > 40 || d != 0 && test.samples != 2400 {
				t.Errorf("%d samples, want %d", len(pcm), test.samples)
			}
		})
	}
}

func TestTheListenersErrorComesBack(t *testing.T) {
	stop := errors.New("stop")
	url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(bytes.Repeat([]byte{1, 2}, 1<<20)) })
	s := synthesizer(t, Options{URL: url})
	n := 0
	if err := s.Synthesize(t.Context(), "Hello.", voice.Options{}, func([]int16) error { n++; return stop }); err != stop || n != 1 {
		t.Errorf("%v after %d pieces", err, n)
	}
}

func TestLimits(t *testing.T) {
	asked := false
	url := voicetest.Server(t, func(http.ResponseWriter, *http.Request) { asked = true })
	s := synthesizer(t, Options{URL: url})
	nothing := func([]int16) error { return nil }
	if err := s.Synthesize(t.Context(), strings.Repeat("é", 4097), voice.Options{}, nothing); err == nil || asked {
		t.Errorf("too long a text: %v", err)
	}
	if err := s.Synthesize(t.Context(), " \n", voice.Options{}, nothing); err != nil || asked {
		t.Errorf("no text: %v", err)
	}
}

// TestVoices checks the formats of lists that servers send, the fixed voices of OpenAI's models, and that Voices returns
// an error if the server fails.
func TestVoices(t *testing.T) {
	for name, test := range map[string]struct {
		model  string
		status int
		list   string
		want   []voice.Named
	}{
		"names":          {"kokoro", 200, `{"voices":["af_heart","bm_fable"]}`, []voice.Named{{Name: "af_heart"}, {Name: "bm_fable"}}},
		"objects":        {"kokoro", 200, `{"voices":[{"id":"af_heart","name":"Heart"},7]}`, []voice.Named{{Name: "af_heart", Title: "Heart"}}},
		"a list":         {"piper", 200, `[{"voice_id":"en_US-joe","name":"joe"}]`, []voice.Named{{Name: "en_US-joe", Title: "joe"}}},
		"a page":         {"piper", 200, `<html>`, nil},
		"no list":        {"piper", 404, `{}`, nil},
		"OpenAI's":       {"", 404, `{}`, []voice.Named{{Name: "alloy"}}},
		"OpenAI's newer": {"gpt-4o-mini-tts", 404, `{}`, []voice.Named{{Name: "alloy"}}},
	} {
		url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method+r.URL.Path != "GET/v1/audio/voices" {
				t.Errorf("%s: asked for %s", name, r.URL)
			}
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.list)
		})
		list, err := synthesizer(t, Options{URL: url, Key: canary, Model: test.model}).Voices(t.Context())
		if err != nil || !slices.Equal(list[:min(len(list), max(1, len(test.want)))], test.want) {
			t.Errorf("%s: %v; %v", name, list, err)
		}
	}
	broken := voicetest.Server(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	if list, err := synthesizer(t, Options{URL: broken, Key: canary}).Voices(t.Context()); err == nil {
		t.Errorf("a server that fails lists %v", list)
	}
}
