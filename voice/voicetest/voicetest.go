// Package voicetest helps to test engines of speech recognition and synthesis, and code that
// processes sound.
package voicetest

import (
	"bytes"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"perch/must"
	"perch/voice"
)

// Server serves HTTP with handler until the test ends, and returns the URL of its API.
func Server(t testing.TB, handler http.HandlerFunc) (url string) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// SynthesizeHello returns the sound that an engine makes of "Hello.".
func SynthesizeHello(t testing.TB, s voice.Synthesizer) (pcm []int16, err error) {
	t.Helper()
	return Synthesize(t, s, "Hello.", voice.Options{})
}

// Synthesize returns the sound that an engine makes of a text.
func Synthesize(t testing.TB, s voice.Synthesizer, text string, o voice.Options) (pcm []int16, err error) {
	t.Helper()
	err = s.Synthesize(t.Context(), text, o, func(p []int16) error { pcm = append(pcm, p...); return nil })
	return pcm, err
}

// Utterance returns a finished utterance.
func Utterance(pcm []int16) *voice.Utterance {
	u := voice.NewUtterance()
	u.Write(pcm)
	u.Finish()
	return u
}

// Tone returns a sine wave. rate is in Hz.
func Tone(rate int, hertz, amplitude float64, d time.Duration) []int16 {
	pcm := make([]int16, int(d.Seconds()*float64(rate)))
	for i := range pcm {
		pcm[i] = int16(math.Round(amplitude * math.Sin(2*math.Pi*hertz*float64(i)/float64(rate))))
	}
	return pcm
}

// Amplitude returns the amplitude of one frequency in a sound.
func Amplitude(pcm []int16, rate int, hertz float64) float64 {
	var re, im float64
	for i, s := range pcm {
		sin, cos := math.Sincos(2 * math.Pi * hertz * float64(i) / float64(rate))
		re, im = re+float64(s)*cos, im+float64(s)*sin
	}
	return 2 * math.Hypot(re, im) / float64(len(pcm))
}

// RMS returns the root mean square of a sound; 0 if it is empty.
func RMS(pcm []int16) float64 {
	sum := 0.0
	for _, s := range pcm {
		sum += float64(s) * float64(s)
	}
	return math.Sqrt(sum / float64(max(1, len(pcm))))
}

// WAV returns a mono WAV file. rate is in Hz.
func WAV(rate int, pcm []int16) []byte {
	var b bytes.Buffer
	_ = voice.WriteWAV(&b, rate, pcm) // writing to a buffer cannot fail
	return b.Bytes()
}

// ReadWAV returns the sound of a WAV file, resampled to rate, in Hz.
func ReadWAV(t testing.TB, file []byte, rate int) (pcm []int16) {
	t.Helper()
	w, err := voice.NewWAVReader(bytes.NewReader(file))
	must.Succeed(t, err)
	pcm, err = w.ReadAll(rate)
	must.Succeed(t, err)
	return pcm
}

// Sentence checks an engine's error: the error must wrap voice.ErrUnavailable, so that the next
// engine is tried, and be one line that contains all words but no API key. Keys in tests contain
// "canary".
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
