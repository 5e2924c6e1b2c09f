package voice_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"perch/voice"
	"perch/voice/voicetest"
)

// levelAt returns the amplitude of one frequency in a sound. A Hann window keeps
// other strong tones from influencing the result.
func levelAt(pcm []int16, rate int, frequency float64) float64 {
	var re, im, sum float64
	for i, s := range pcm {
		w := 0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/float64(len(pcm)))
		a := 2 * math.Pi * frequency * float64(i) / float64(rate)
		re += w * float64(s) * math.Cos(a)
		im += w * float64(s) * math.Sin(a)
		sum += w
	}
	return 2 * math.Hypot(re, im) / sum
}

func decibel(a, b float64) float64 { return 20 * math.Log10(max(a, 1e-9)/b) }

func resampled(from, to int, pcm []int16, piece int) []int16 {
	r := voice.NewResampler(from, to)
	var out []int16
	for len(pcm) > 0 {
		n := min(piece, len(pcm))
		out = append(out, r.Resample(pcm[:n])...)
		pcm = pcm[n:]
	}
	return out
}

func TestResamplerKeepsToneAndRejectsAliases(t *testing.T) {
	const amplitude = 16000.0
	for _, c := range []struct{ from, to int }{{22050, 24000}, {16000, 24000}, {24000, 16000}, {48000, 16000}, {44100, 24000}} {
		lower := float64(min(c.from, c.to)) / 2
		for _, frequency := range []float64{200, 1000, 0.5 * lower, 0.8 * lower} {
			out := resampled(c.from, c.to, voicetest.Tone(c.from, frequency, amplitude, time.Second), 1<<20)
			middle := out[c.to/8 : c.to-c.to/8]
			if db := decibel(levelAt(middle, c.to, frequency), amplitude); math.Abs(db) > 0.5 {
				t.Errorf("%d to %d Hz: a tone of %.0f Hz comes out %.2f dB off", c.from, c.to, frequency, db)
			}
			// Images of the tone lie around multiples of the input rate.
			for _, image := range []float64{float64(c.from) - frequency, float64(c.from) + frequency} {
				if image < float64(c.to)/2 {
					if db := decibel(levelAt(middle, c.to, image), amplitude); db > -60 {
						t.Errorf("%d to %d Hz: a tone of %.0f Hz has an image at %.0f Hz, %.1f dB", c.from, c.to, frequency, image, db)
					}
				}
			}
		}
		if c.from > c.to { // tones above half of the output rate must be removed, or they would fold back
			for _, frequency := range []float64{1.1 * lower, 1.3 * lower} {
				out := resampled(c.from, c.to, voicetest.Tone(c.from, frequency, amplitude, time.Second), 1<<20)
				if db := decibel(voicetest.RMS(out[c.to/8:c.to-c.to/8])*math.Sqrt2, amplitude); db > -60 {
					t.Errorf("%d to %d Hz: a tone of %.0f Hz folds back at %.1f dB", c.from, c.to, frequency, db)
				}
			}
		}
	}
}

func TestResamplingInPiecesChangesNothing(t *testing.T) {
	in := voicetest.Tone(22050, 440, 10000, time.Second)
	whole := resampled(22050, 24000, in, len(in))
	for _, piece := range []int{1, 7, 160, 4096} {
		if got := resampled(22050, 24000, in, piece); !slices.Equal(got, whole) {
			t.Errorf("in pieces of %d samples the output differs", piece)
		}
	}
	if n := len(whole); n < 24000-60 || n > 24000 {
		t.Errorf("a second became %d samples", n)
	}
}

func TestResamplerClips(t *testing.T) {
	loud := make([]int16, 4000)
	for i := range loud {
		loud[i] = math.MaxInt16
		if i/20%2 == 1 {
			loud[i] = math.MinInt16
		}
	}
	for i, s := range resampled(16000, 24000, loud, 4000) {
		if i > 100 && i < 5000 && s == 0 {
			t.Fatal("an overshoot wrapped around")
		}
	}
}
