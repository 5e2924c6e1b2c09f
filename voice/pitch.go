package voice

// The period of a voice is the lag at which its sound is most similar to itself. hasPitch
// searches for it in the latest 32 ms of sound, at half the rate. Lags are in samples at
// pitchRate.
const (
	pitchSpan      = 512 // samples at 16 kHz
	pitchRate      = MicRate / 2
	maxLag         = pitchRate / 75  // period of the deepest voice, 75 Hz
	minLag         = pitchRate / 400 // period of the highest voice, 400 Hz
	minCorrelation = 0.5             // vowels exceed it; breath and wind do not
	minToneRatio   = 0.93            // relative to the best correlation: a sound that correlates this well at a lag below minLag is a tone, not a voice
)

// hasPitch reports whether sound has the period of a voice, as vowels do. Breath has no
// period. The whine of a motor has a shorter period than any voice.
func hasPitch(pcm *[pitchSpan]int16) bool {
	var half [pitchSpan / 2]float32
	for i := range half {
		half[i] = float32(pcm[2*i]) + float32(pcm[2*i+1])
	}
	best := float32(0)
	for lag := minLag; lag <= maxLag; lag++ {
		best = max(best, correlation(half[:len(half)-lag], half[lag:]))
	}
	return best > minCorrelation && !isTone(half[:], best)
}

// isTone reports whether sound has a shorter period than a voice: the correlation falls below
// zero and rises nearly to best before minLag.
func isTone(half []float32, best float32) bool {
	fallen := false
	for lag := 1; lag < minLag; lag++ {
		r := correlation(half[:len(half)-lag], half[lag:])
		fallen = fallen || r < 0
		if fallen && r > minToneRatio*best {
			return true
		}
	}
	return false
}

// correlation returns the similarity of two pieces of sound of the same length, from -1 to 1.
func correlation(a, b []float32) float32 {
	var ab, aa, bb float32
	b = b[:len(a)]
	for i, x := range a {
		ab += x * b[i]
		aa += x * x
		bb += b[i] * b[i]
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	n := aa
	if bb > n {
		n = bb
	}
	return ab / n
}
