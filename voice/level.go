package voice

import (
	"math"
	"slices"
	"time"
)

// Levels are how loud a packet of speech is, part by part: a mouth moves faster than
// packets follow one another.
type Levels [2]float64

// LevelDuration is how long each of a packet's levels lasts.
const LevelDuration = FrameDuration / time.Duration(len(Levels{}))

// LevelsOf are those of speech at SpeakerRate, each of LevelDuration.
func LevelsOf(pcm []int16) (all []float64) {
	for part := range slices.Chunk(pcm, int(SpeakerRate*LevelDuration/time.Second)) {
		all = append(all, Level(part))
	}
	return all
}

// openMouth is the RMS of loud speech, -15 dBFS: synthesizers reach it in stressed vowels.
const openMouth = 6000

// Level is how loud sound is, from 0 where no voice would be heard to 1 in stressed
// vowels, in steps of 0.02. It follows the root of the RMS: a quiet voice moves a
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
