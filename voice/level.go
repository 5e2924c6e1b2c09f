package voice

import (
	"math"
	"slices"
	"time"
)

// Levels are how loud a packet of speech is, part by part, since a mouth moves faster
// than one packet.
type Levels [2]float64

// LevelDuration is the duration of each level of a packet.
const LevelDuration = FrameDuration / time.Duration(len(Levels{}))

// LevelsOf returns the levels of speech at SpeakerRate, one per LevelDuration.
func LevelsOf(pcm []int16) (all []float64) {
	for part := range slices.Chunk(pcm, int(SpeakerRate*LevelDuration/time.Second)) {
		all = append(all, Level(part))
	}
	return all
}

// openMouth is the RMS of loud speech, -15 dBFS, which synthesizers reach in stressed vowels.
const openMouth = 6000

// Level returns how loud sound is, from 0 for no audible voice to 1 in stressed vowels,
// in steps of 0.02. It follows the square root of the RMS, since a quiet voice moves a
// mouth too.
func Level(pcm []int16) float64 {
	if len(pcm) == 0 {
		return 0
	}
	loud := rms(pcm)
	if loud < lowestVoice {
		return 0
	}
	return math.Round(50*min(1, math.Sqrt(loud/openMouth))) / 50
}
