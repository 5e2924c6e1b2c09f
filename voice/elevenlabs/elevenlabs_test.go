package elevenlabs

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	canary = "sk_canary0f3d9a77c1"
	george = "JBFqnCBsd6RMkjVDRZzb"
)

func engine(t testing.TB, o Options) *Engine {
	t.Helper()
	if o.Voice == "" {
		o.Voice = george
	}
	e, err := New(o)
	must.Succeed(t, err)
	t.Cleanup(e.Close)
	return e
}

// sound returns n bytes of raw PCM, and the same sound as samples.
func sound(n int) ([]byte, []int16) {
	data, pcm := make([]byte, n), make([]int16, n/2)
	for i := range data {
		data[i] = byte(i * 13)
	}
	for i := range pcm {
		pcm[i] = int16(uint16(data[2*i]) | uint16(data[2*i+1])<<8)
	}
	return data, pcm
}

func TestSynthesizerSpeaksTheProtocol(t *testing.T) {
	data, pcm := sound(9001)
	var path, body string
	url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		path, body = r.Method+" "+r.URL.String(), string(sent)
		if r.Header.Get("xi-api-key") != canary || r.Header.Get("Authorization") != "" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("sent with %q", r.Header)
		}
		w.Header().Set("Content-Type", "audio/pcm")
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 1+len(rest)%61)
			_, _ = w.Write(rest[:n])
			w.(http.Flusher).Flush()
			rest = rest[n:]
		}
	})
	e := engine(t, Options{URL: url, Key: canary})
	if received, err := voicetest.SynthesizeHello(t, e); err != nil || !slices.Equal(received, pcm) || e.Name() != "elevenlabs" {
		t.Errorf("%d samples of %d, or others; %v", len(received), len(pcm), err)
	}
	if path != "POST /v1/text-to-speech/"+george+"/stream?output_format=pcm_24000" || body != `{"text":"Hello.","model_id":"eleven_flash_v2_5"}` {
		t.Errorf("%s %s", path, body)
	}
	for asked, spoke := range map[string]string{"21m00Tcm4TlvDq8ikWAM": "21m00Tcm4TlvDq8ikWAM", "en-us": george, "../../user": george} {
		if err := e.Synthesize(t.Context(), "x", voice.Options{Voice: asked}, func([]int16) error { return nil }); err != nil ||
			!strings.Contains(path, "/"+spoke+"/stream") {
			t.Errorf("voice %q: %s, %v", asked, path, err)
		}
	}
	path = ""
	if err := e.Synthesize(t.Context(), " ", voice.Options{}, nil); err != nil || path != "" {
		t.Errorf("no text: %s, %v", path, err)
	}
	if err := e.Synthesize(t.Context(), strings.Repeat("x", 4097), voice.Options{}, nil); err == nil || path != "" {
		t.Errorf("too long a text: %s, %v", path, err)
	}
}

func TestRefusals(t *testing.T) {
	for body, test := range map[string]struct {
		status int
		want   string
	}{
		`{"detail":{"status":"invalid_api_key","message":"Invalid API key ` + canary + `"}}`: {401,
			"refuses the key (HTTP 401: Invalid API key [key])"},
		`{"detail":{"status":"quota_exceeded","message":"This request exceeds your limit."}}`: {401,
			"no credit left (HTTP 401: This request exceeds your limit)"},
		`{"detail":{"type":"not_found","code":"voice_not_found","message":"A voice was not found."}}`: {404, "check voice"},
		`{"detail":{"status":"model_not_found","message":"no such thing"}}`:                           {400, "check model"},
		`{"detail":[{"loc":["body","text"],"msg":"Field required","type":"missing"}]}`:                {422, "text: Field required"},
	} {
		url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, body)
		})
		_, err := voicetest.SynthesizeHello(t, engine(t, Options{URL: url, Key: canary}))
		voicetest.Sentence(t, err, test.want)
		voicetest.Sentence(t, err, "ElevenLabs at http://127.0.0.1:")
	}
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   string
		tried  bool
	}{
		"a voice":        {200, `{"voice_id":"` + george + `","name":"George"}`, "", false},
		"wrong key":      {401, `{"detail":{"status":"invalid_api_key","message":"Invalid API key"}}`, "refuses the key", false},
		"a key of few":   {401, `{"detail":{"status":"missing_permissions","message":"voices_read"}}`, "", true},
		"no such voice":  {404, `{"detail":{"status":"voice_not_found","message":"none"}}`, "check voice", false},
		"something else": {200, `<html>`, "is not a voice", false},
		"too much":       {200, strings.Repeat(" ", 1<<20+1), "an answer that is too long", false},
	} {
		t.Run(name, func(t *testing.T) {
			tried := false
			url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					tried = true
					_, _ = w.Write(bytes.Repeat([]byte{1, 2}, 500))
					return
				}
				if r.URL.Path != "/v1/voices/"+george || r.Header.Get("xi-api-key") != canary {
					t.Errorf("%s with %q", r.URL, r.Header)
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			err := engine(t, Options{URL: url, Key: canary}).Check(t.Context())
			if test.want != "" {
				voicetest.Sentence(t, err, test.want)
			} else if err != nil {
				t.Error(err)
			}
			if tried != test.tried {
				t.Errorf("tried to speak: %v", tried)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no voice":     {Key: canary},
		"a path":       {Voice: "../" + canary},
		"a long voice": {Voice: strings.Repeat("v", 65)},
		"no model":     {Voice: george, Model: "a b"},
	} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestVoices checks that Voices returns the valid voices of the account, and none if the key may not read the list.
func TestVoices(t *testing.T) {
	for answer, want := range map[string][]voice.Named{
		`{"voices":[{"voice_id":"` + george + `","name":"George"},{"voice_id":"../x","name":"x"}]}`: {{Name: george, Title: "George"}},
		`{"detail":{"status":"missing_permissions"}}`:                                               nil,
	} {
		url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
			if want == nil {
				w.WriteHeader(http.StatusUnauthorized)
			}
			_, _ = io.WriteString(w, answer)
		})
		if list, err := engine(t, Options{URL: url, Key: canary}).Voices(t.Context()); err != nil || !slices.Equal(list, want) {
			t.Errorf("%s: %v; %v", answer, list, err)
		}
	}
}
