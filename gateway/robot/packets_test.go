package robot

import (
	"sync"
	"testing"

	"perch/voice"
)

// spokenPackets are vowels as a robot's microphone sends them, and silence. They
// are made once: to encode them takes longer than most talks.
func spokenPackets(t *testing.T) (speech, silence [][]byte) {
	t.Helper()
	vowels.once.Do(func() { vowels.speech, vowels.silence = spokenBy(t, voice.MicRate/120) })
	return vowels.speech, vowels.silence
}

var vowels struct {
	once            sync.Once
	speech, silence [][]byte
}

// spokenBy is somebody whose voice has a period of its own, in samples.
func spokenBy(t *testing.T, period int) (speech, silence [][]byte) {
	t.Helper()
	encoder, err := voice.NewEncoder(voice.MicRate)
	if err != nil {
		t.Fatal(err)
	}
	if err := encoder.LikeRobot(); err != nil {
		t.Fatal(err)
	}
	var into *[][]byte
	keep := func(p []byte) error { *into = append(*into, append([]byte(nil), p...)); return nil }
	into = &speech
	if err := encoder.Encode(vowelsOf(20*voice.MicFrame, period), keep); err != nil {
		t.Fatal(err)
	}
	into = &silence
	if err := encoder.Encode(make([]int16, 40*voice.MicFrame), keep); err != nil {
		t.Fatal(err)
	}
	return speech, silence
}

// vowelsOf is a sound with the formants of a voice, in syllables, whose pitch
// has a period of so many samples.
func vowelsOf(n, period int) []int16 {
	pcm := make([]int16, n)
	var y1, y2, z1, z2 float64
	for i := range pcm {
		pulse := 0.0
		if i%period == 0 {
			pulse = 9000
		}
		if i%4000 > 3200 {
			pulse = 0 // between syllables
		}
		y := pulse + 1.77*y1 - 0.87*y2 // about 600 Hz
		y2, y1 = y1, y
		z := y + 1.35*z1 - 0.85*z2 // about 1.2 kHz
		z2, z1 = z1, z
		pcm[i] = int16(max(-30000, min(30000, z/6)))
	}
	return pcm
}
