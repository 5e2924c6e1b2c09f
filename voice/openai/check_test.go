package openai

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/voice/voicetest"
)

func TestCheck(t *testing.T) {
	const list = `{"object":"list","data":[{"id":"tiny"},{"id":"Kokoro"}]}`
	tests := map[string]struct {
		status int // status of the response to the request for the list
		list   string
		work   int // status of the response to the request of tryRequest
		want   string
		tried  bool
	}{
		"listed":             {200, list, 500, "", false},
		"not listed, taken":  {200, `{"data":[]}`, 200, "", true},
		"not listed":         {200, `{"data":[{"id":"other"}]}`, 404, "check model", true},
		"no list":            {404, `{"detail":"Not Found"}`, 200, "", true},
		"a page":             {200, `<html>`, 405, "ends in /v1", true},
		"a key without list": {403, `{"error":{"message":"Missing scopes: api.model.read"}}`, 200, "", true},
		"wrong key":          {401, `{"error":"no ` + canary + `"}`, 200, "refuses the key", false},
		"overloaded":         {500, ``, 200, "has failed (HTTP 500)", false},
		"endless":            {200, strings.Repeat(" ", 1<<20) + "{}", 200, "an answer that is too long", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var asked []string
			url := voicetest.Server(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked = append(asked, r.Method+" "+r.URL.Path)
				switch {
				case r.URL.Path == "/v1/models":
					w.WriteHeader(test.status)
					_, _ = io.WriteString(w, test.list)
				case test.work != 200:
					w.WriteHeader(test.work)
					if test.work == 404 {
						_, _ = io.WriteString(w, `{"error":{"code":"model_not_found","message":"it is not here"}}`)
					}
				case r.URL.Path == "/v1/audio/speech":
					_, _ = w.Write(raw(ramp(480)))
				default:
					if len(body) < 2*8000 || len(body) > 2*8000+1000 {
						t.Errorf("tried with %d bytes", len(body))
					}
					_, _ = io.WriteString(w, `{"text":""}`)
				}
			})
			engines := map[string]interface {
				Check(context.Context) error
			}{
				"/v1/audio/transcriptions": recognizer(t, Options{URL: url, Key: canary, Model: "tiny"}),
				"/v1/audio/speech":         synthesizer(t, Options{URL: url, Key: canary, Model: "kokoro"}),
			}
			for path, engine := range engines {
				asked = nil
				err := engine.Check(t.Context())
				if test.want != "" {
					voicetest.Sentence(t, err, test.want)
				} else if err != nil {
					t.Error(err)
				}
				want := []string{"GET /v1/models"}
				if test.tried {
					want = append(want, "POST "+path)
				}
				if !slices.Equal(asked, want) {
					t.Errorf("asked for %q, want %q", asked, want)
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := recognizer(t, Options{URL: "http://127.0.0.1:9/v1"}).Check(ctx); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

func TestOptions(t *testing.T) {
	const url = "http://127.0.0.1:8000/v1"
	for name, o := range map[string]Options{
		"no url":          {Key: canary},
		"no host":         {URL: "http:///v1", Key: canary},
		"no scheme":       {URL: "127.0.0.1:8000/v1", Key: canary},
		"another scheme":  {URL: "ftp://h/" + canary},
		"a secret in it":  {URL: "http://user:" + canary + "@h:port/v1"},
		"a fragment":      {URL: url + "#x"},
		"a key of lines":  {URL: url, Key: canary + "\nmore"},
		"a key of Umlaut": {URL: url, Key: canary + "ä"},
		"a long key":      {URL: url, Key: strings.Repeat(canary, 50)},
		"a long model":    {URL: url, Model: strings.Repeat("m", 201)},
		"a long voice":    {URL: url, Voice: strings.Repeat("v", 201)},
		"no rate":         {URL: url, Rate: 100},
		"no patience":     {URL: url, FirstByte: -time.Second},
		"no idle":         {URL: url, Idle: -time.Second},
	} {
		_, err := NewRecognizer(o)
		_, second := NewSynthesizer(o)
		if err == nil || second == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, %v", name, err, second)
		}
	}
}

// TestSecretInTheURL checks that errors contain neither the user and the password nor the query of the URL.
func TestSecretInTheURL(t *testing.T) {
	_, err := voicetest.SynthesizeHello(t, synthesizer(t, Options{URL: "http://user:" + strings.ReplaceAll(canary, "/", "%2F") + "@127.0.0.1:9/v1?key=" + canary}))
	voicetest.Sentence(t, err, "nothing listens at http://127.0.0.1:9/v1; ")
}
