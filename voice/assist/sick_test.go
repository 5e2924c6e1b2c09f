package assist

import (
	"net/http"
	"testing"
	"time"

	"perch/voice"
)

// TestSickSynthesizers: what Home Assistant does with a sentence costs a bounded
// time and a bounded sound, and its error is one sentence. What is waited for is
// measured where the time is not real, at the other engines behind HTTP.
func TestSickSynthesizers(t *testing.T) {
	wav := tone(t, 24000, time.Second)
	sends := func(encoding string, head, piece []byte, pause time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "audio/x-wav")
			if encoding != "" {
				w.Header().Set("Content-Encoding", encoding)
			}
			_, err := w.Write(head)
			for out := http.NewResponseController(w); err == nil && r.Context().Err() == nil; time.Sleep(pause) {
				if _, err = w.Write(piece); err == nil {
					err = out.Flush()
				}
			}
		}
	}
	for name, test := range map[string]struct {
		sound http.HandlerFunc
		want  string
		most  time.Duration
	}{
		"a byte at a time":        {sends("", wav, []byte{1}, 3*time.Millisecond), "slower than it is played", 2 * time.Second},
		"endless":                 {sends("", wav, make([]byte, 48000), 0), "does not stop speaking", 13 * time.Second},
		"gzip":                    {sends("gzip", wav, nil, time.Millisecond), "gzip", 0},
		"a rate of 191 999 Hz":    {sends("", tone(t, 191999, time.Millisecond), nil, time.Millisecond), "is not 16-bit PCM", 0},
		"a rate of 47 999 Hz":     {sends("", tone(t, 47999, time.Millisecond), nil, time.Millisecond), "is not 16-bit PCM", 0},
		"a header without an end": {sends("", wav[:20], []byte{0}, 3*time.Millisecond), "is not 16-bit PCM", 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHA(t, setUp(home))
			h.sound = test.sound
			pcm, err := hear(t.Context(), h.synthesizer(func(o *Options) { o.IdleWithin = 300 * time.Millisecond }), "Hello.", voice.Options{})
			sentence(t, err, test.want)
			if sound := time.Duration(len(pcm)) * time.Second / voice.SpeakerRate; sound > test.most {
				t.Errorf("%s of it are played", sound)
			}
		})
	}
}
