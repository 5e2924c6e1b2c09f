// Package voicetest helps to test engines that use other servers.
package voicetest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"perch/voice"
)

// Server serves until the test ends, and returns the address of its API.
func Server(t testing.TB, handler http.HandlerFunc) (url string) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// Synthesized returns the sound that an engine makes of a text.
func Synthesized(t testing.TB, s voice.Synthesizer) (pcm []int16, err error) {
	t.Helper()
	err = s.Synthesize(t.Context(), "Hello.", voice.Options{}, func(p []int16) error { pcm = append(pcm, p...); return nil })
	return pcm, err
}

// Sentence checks an engine's error: it makes the next engine be tried, and is one line
// for a log that contains words and no key. Keys in tests contain "canary".
func Sentence(t testing.TB, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, voice.ErrUnavailable) {
		t.Errorf("%v does not wrap ErrUnavailable", err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if strings.Contains(strings.ToLower(err.Error()), "canary") {
		t.Errorf("%q holds a key", err)
	}
	if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") || len(err.Error()) > 700 {
		t.Errorf("%q is no line for a log", err)
	}
}
