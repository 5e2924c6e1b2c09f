package voice

import (
	"math"
	"slices"
	"time"
)

// Levels are the loudness levels of the two halves of a packet of speech, each LevelDuration
// long. One level per packet would be too slow for the animation of a mouth.
type Levels [2]float64

// LevelDuration is the duration of each level of a packet.
const LevelDuration = FrameDuration / time.Duration(len(Levels{}))

// LevelsOf returns the levels of speech at SpeakerRate, one per LevelDuration.
func LevelsOf(pcm []int16) (levels []float64) {
	for part := range slices.Chunk(pcm, int(SpeakerRate*LevelDuration/time.Second)) {
		levels = append(levels, Level(part))
	}
	return levels
}

// openMouth is the RMS that opens a mouth fully: -15 dBFS, which synthesizers reach in stressed vowels.
const openMouth = 6000

// Level returns how loud sound is, from 0 for no audible voice to 1 for a stressed vowel, in
// steps of 0.02. It is proportional to the square root of the RMS, because a quiet voice also
// moves the mouth.
func Level(pcm []int16) float64 {
	if len(pcm) == 0 {
		return 0
	}
	loud := rms(pcm)
	if loud < minVoiceLevel {
		return 0
	}
	return math.Round(50*min(1, math.Sqrt(loud/openMouth))) / 50
}
