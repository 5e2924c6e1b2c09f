package voice_test

import (
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

// flite returns a sentence spoken by flite, at 16 kHz. name is one of its voices.
func flite(t testing.TB, name, text string) []int16 {
	t.Helper()
	file := filepath.Join(t.TempDir(), "speech.wav")
	if out, err := exec.Command("flite", "-voice", name, "-t", text, "-o", file).CombinedOutput(); err != nil {
		t.Fatalf("flite, which make test installs: %v: %s", err, out)
	}
	data, err := os.ReadFile(file)
	must.Succeed(t, err)
	return voicetest.ReadWAV(t, data, voice.MicRate)
}

func newEcho(t testing.TB) *voice.Echo {
	t.Helper()
	e, err := voice.NewEcho()
	must.Succeed(t, err)
	t.Cleanup(e.Close)
	return e
}

func newEncoder(t testing.TB, rate int) *voice.Encoder {
	t.Helper()
	e, err := voice.NewEncoder(rate)
	must.Succeed(t, err)
	return e
}

func newDecoder(t testing.TB, rate int) *voice.Decoder {
	t.Helper()
	d, err := voice.NewDecoder(rate)
	must.Succeed(t, err)
	return d
}

func samples(d time.Duration) int { return int(d * voice.MicRate / time.Second) }

// noise returns white noise with the RMS level.
func noise(d time.Duration, level float64, r *rand.Rand) []int16 {
	pcm := make([]int16, samples(d))
	for i := range pcm {
		pcm[i] = int16(r.NormFloat64() * level)
	}
	return pcm
}

// breath returns noise from 300 to 3000 Hz that swells and fades, like breath on
// a microphone.
func breath(d time.Duration, level float64, r *rand.Rand) []int16 {
	pcm := make([]int16, samples(d))
	low, high := 0.0, 0.0
	for i := range pcm {
		x := r.NormFloat64()
		low += 0.7 * (x - low)
		high += 0.11 * (low - high)
		swell := math.Sin(math.Pi * float64(i) / float64(len(pcm)))
		pcm[i] = int16((low - high) * swell * level * 1.6)
	}
	return pcm
}

// servo returns the noise of a small geared motor: a tone with harmonics whose
// pitch follows the speed from 500 Hz to 1.4 kHz and back, with the 50 Hz of the
// motor's pulses in its loudness, and the rattle of the gears.
func servo(d time.Duration, level float64, r *rand.Rand) []int16 {
	pcm := make([]int16, samples(d))
	phase := 0.0
	for i := range pcm {
		at := float64(i) / float64(len(pcm))
		phase += 2 * math.Pi * (500 + 900*math.Sin(math.Pi*at)) / voice.MicRate
		v := math.Sin(phase) + 0.6*math.Sin(2*phase) + 0.4*math.Sin(3*phase) + 0.4*r.NormFloat64()
		v *= 1 + 0.3*math.Sin(2*math.Pi*50*float64(i)/voice.MicRate)
		pcm[i] = int16(v * level)
	}
	return pcm
}

// throughOpus encodes a sound like a robot, and returns the decoded sound.
func throughOpus(t testing.TB, pcm []int16) []int16 {
	t.Helper()
	e, err := voice.NewMicEncoder()
	must.Succeed(t, err)
	d := newDecoder(t, voice.MicRate)
	var heard []int16
	if err := e.Encode(pcm, func(packet []byte) error {
		out, err := d.Decode(packet)
		heard = append(heard, out...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return heard
}

func join(pieces ...[]int16) (all []int16) {
	for _, p := range pieces {
		all = append(all, p...)
	}
	return all
}
