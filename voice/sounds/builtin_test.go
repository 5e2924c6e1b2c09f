package sounds

import (
	"testing"
	"time"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

// loudness returns the amplitude of a tone in a sound, from 0 to 1.
func loudness(pcm []int16, hertz float64) float64 {
	return voicetest.Amplitude(pcm, voice.SpeakerRate, hertz) / (1 << 15)
}

func rms(pcm []int16) float64 { return voicetest.RMS(pcm) / (1 << 15) }

func second(pcm []int16, from, to float64) []int16 {
	return pcm[int(from*voice.SpeakerRate):int(to*voice.SpeakerRate)]
}

func length(pcm []int16) time.Duration {
	return time.Duration(len(pcm)) * time.Second / voice.SpeakerRate
}

// TestBuiltInSounds checks the lengths and the loudness of the built-in sounds, and that they do not
// click at their beginning or end.
func TestBuiltInSounds(t *testing.T) {
	for name, want := range map[string]time.Duration{"purr": 3100 * time.Millisecond, "chime": 1600 * time.Millisecond, "alarm": 4 * time.Second} {
		pcm := must.Value(Open("").Load(t.Context(), name))(t)
		if took := length(pcm); took != want {
			t.Errorf("%s lasts %s, not %s", name, took, want)
		}
		peak := int16(0)
		for _, v := range pcm {
			peak = max(peak, v, -v)
		}
		if peak < 21000 || peak > 25000 || rms(pcm) < 0.03 {
			t.Errorf("%s: peak %d, rms %.3f", name, peak, rms(pcm))
		}
		for _, edge := range [][]int16{pcm[:10], pcm[len(pcm)-10:]} {
			if rms(edge) > 0.05 {
				t.Errorf("%s clicks: %v", name, edge)
			}
		}
	}
}
