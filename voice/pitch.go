package voice

// A voice's pitch is searched in the latest 32 ms at half the rate, as the lag at which
// the sound is most similar to itself.
const (
	pitchSpan    = 512 // samples at 16 kHz
	pitchRate    = MicRate / 2
	maxLag       = pitchRate / 75  // the deepest voice
	shortestLag  = pitchRate / 400 // the highest
	likeness     = 0.5             // of vowels; breath and wind stay below
	toneLikeness = 0.93            // a sound that repeats this well at a shorter lag is a tone, not a voice
)

// hasPitch reports whether sound is periodic as the vowels of a voice are.
// Breath is not periodic. A motor's whine is, but at a pitch above any
// voice's, so it repeats just as well at lags that are too short for one.
func hasPitch(pcm *[pitchSpan]int16) bool {
	var half [pitchSpan / 2]float32
	for i := range half {
		half[i] = float32(pcm[2*i]) + float32(pcm[2*i+1])
	}
	best := float32(0)
	for lag := shortestLag; lag <= maxLag; lag++ {
		best = max(best, correlation(half[:len(half)-lag], half[lag:]))
	}
	return best > likeness && !isTone(half[:], best)
}

// isTone looks for a period shorter than a voice's: the likeness falls below
// zero and comes back before the shortest lag of a voice.
func isTone(half []float32, best float32) bool {
	fallen := false
	for lag := 1; lag < shortestLag; lag++ {
		r := correlation(half[:len(half)-lag], half[lag:])
		fallen = fallen || r < 0
		if fallen && r > toneLikeness*best {
			return true
		}
	}
	return false
}

// correlation returns how similar two pieces of the same length are, from -1 to 1.
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
