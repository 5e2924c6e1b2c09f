package wyoming

import (
	"testing"
	"testing/synctest"
	"time"

	"perch/voice"
	"perch/voice/voicetest"
)

// TestHostileSynthesizers checks that a malicious response takes a bounded time,
// results in a bounded sound, and causes an error of one sentence.
func TestHostileSynthesizers(t *testing.T) {
	f := Format{24000, 2, 1}
	every := func(pause time.Duration, f Format, sound int) script {
		return func(p *peer, _ Event) {
			p.event(TypeAudioStart, f, nil)
			for {
				p.event(TypeAudioChunk, f, make([]byte, sound))
				time.Sleep(pause)
			}
		}
	}
	for name, test := range map[string]struct {
		script script
		words  string
		sound  time.Duration // maximum duration of the sound
		within time.Duration // maximum time of the call
	}{
		"a byte a second":           {every(time.Second, f, 1), "slower than it is played", time.Second, time.Minute},
		"endless":                   {every(0, f, 48000), "does not stop speaking", 13 * time.Second, time.Second},
		"endless, just fast enough": {every(5*time.Second, f, 48000), "does not stop speaking", 13 * time.Second, 70 * time.Second},
		"endless, in many formats": {func(p *peer, _ Event) {
			for i := 0; ; i++ {
				f := Format{[]int{16000, 24000, 48000}[i%3], 2, 1 + i%2}
				p.event(TypeAudioStart, f, nil)
				p.event(TypeAudioChunk, f, make([]byte, 2*f.Rate*f.Channels))
			}
		}, "does not stop speaking", 14 * time.Second, time.Second},
		"a rate of 191 999 Hz": {every(0, Format{191999, 2, 1}, 480), "191999 samples a second", 0, time.Second},
		"a rate of 96 000 Hz":  {every(0, Format{96000, 2, 1}, 480), "96000 samples a second", 0, time.Second},
		"a rate of 23 999 Hz":  {every(0, Format{23999, 2, 1}, 480), "23999 samples a second", 0, time.Second},
		"six channels":         {every(0, Format{24000, 2, 6}, 480), "6 channels", 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &fake{info: piper, script: test.script}
				e := server.piped(t, Options{})
				began := time.Now()
				pcm, err := voicetest.Synthesize(t, e, "Hello.", voice.Options{})
				voicetest.Sentence(t, err, test.words)
				if sound := time.Duration(len(pcm)) * time.Second / voice.SpeakerRate; sound > test.sound {
					t.Errorf("%s of it are played", sound)
				}
				if took := time.Since(began); took > test.within {
					t.Errorf("it took %s", took)
				}
				server.done.Wait()
			})
		})
	}
}

// TestTranscriptIsBounded checks that a call fails if the server sends its transcript too slowly,
// and also if the transcript is fast enough but takes more than maxStreaming.
func TestTranscriptIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		pause  time.Duration
		words  string
		within time.Duration
	}{
		"a letter a second":      {time.Second, "far slower than it was said", 25 * time.Second},
		"a letter a half second": {time.Second / 2, "one transcript for more than 1m0s", 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &fake{info: whisper, script: func(p *peer, _ Event) {
					p.until(TypeAudioStop)
					for range 3600 {
						p.event(TypeTranscriptChunk, Text{Text: "a"}, nil)
						time.Sleep(test.pause)
					}
				}}
				began := time.Now()
				_, err := server.piped(t, Options{}).Recognize(t.Context(), said(time.Second), voice.Options{})
				voicetest.Sentence(t, err, test.words)
				if took := time.Since(began); took > test.within {
					t.Errorf("it took %s", took)
				}
				server.done.Wait()
			})
		})
	}
}
