package voice

import "math"

// Thresholds of the judge. The usual residue is the power that the canceller usually leaves of our
// voice. A frame holds a person's voice if the clean sound (the canceller's output) exceeds the usual
// residue by the power of a quiet person and by a fraction of the clean sound's power, and if the
// microphone's sound exceeds the usual echo by a fraction of its power. All levels and factors are of
// power, not of amplitude.
const (
	minUnexplained = 0.35    // fraction of the clean sound's power that must exceed the usual residue
	minNotEcho     = 0.15    // fraction of the microphone's power that must exceed the usual echo
	carefulFactor  = 1.7     // multiplies both fractions if the alignment may be wrong without notice
	personLevel    = 80 * 80 // mean square of the samples of the quietest person, -52 dBFS

	// The canceller has diverged if it adds power in two frames within 0.4 s.
	maxAddedRatio  = 2   // in such a frame, the clean sound has more than this multiple of the microphone's power,
	minAddedFactor = 4   // and more than this multiple of personLevel
	maxAddedFrames = 1.5 // limit of judge.addedFrames

	// The statistics of usualRatio.
	initialGain   = 3   // dB; a cautious guess until the ratio is learned
	initialSpread = 6   // dB
	initialWeight = 4   // steps; how much the guess counts
	maxWeight     = 150 // steps, 3 s of loud speech; older steps lose weight, since the room may change
	usualSpreads  = 1.5 // a ratio is usual up to this multiple of the spread above the mean

	noiseMargin      = 3 // sound is noise up to this multiple of the noise floor
	unknownLagFactor = 4 // multiplies the expected echo while the lag is unknown
)

// usualRatio is the usual ratio between the powers of two sounds, in each band.
type usualRatio struct {
	gain   [bands]float32 // mean ratio in dB
	spread [bands]float32 // standard deviation of the ratio in dB, estimated
	weight [bands]float32 // number of steps that the mean is based on, at most maxWeight
}

// newUsualRatio returns the cautious guess in every band.
func newUsualRatio() (c usualRatio) {
	for b := range bands {
		c.gain[b], c.spread[b], c.weight[b] = initialGain, initialSpread, initialWeight
	}
	return c
}

// maxRatio returns the largest usual ratio in band b, as a factor of power.
func (c *usualRatio) maxRatio(b int) float32 { return fromDB(c.gain[b] + usualSpreads*c.spread[b]) }

// fromDB converts decibels to a factor of power.
func fromDB(db float32) float32 { return float32(math.Pow(10, float64(db)/10)) }

// learn updates the statistics with the ratio of sound to reference in one step. It limits
// outliers, because a person's voice must not soon count as usual, but it drops none, because
// wrong statistics must not last. It ignores bands where the reference is too quiet.
func (c *usualRatio) learn(sound, reference, noise *bandLevels) {
	for b := range bands {
		if reference[b]*fromDB(c.gain[b]) < 10*noise[b] {
			continue
		}
		off := float32(10*math.Log10(float64(sound[b]/reference[b])+1e-9)) - c.gain[b]
		off = max(-20, min(off, 2*c.spread[b]+3))
		c.weight[b] = min(c.weight[b]+1, maxWeight)
		c.gain[b] += off / c.weight[b]
		off -= off / c.weight[b]
		// In a normal distribution, the standard deviation is 1.25 times the mean deviation.
		c.spread[b] += (1.25*min(max(off, -off), 12) - c.spread[b]) / c.weight[b]
	}
}

// judge decides whether a person is heard besides our voice. It compares the microphone's
// sound and the clean sound, which is the canceller's output, with the power of our voice in
// each band.
type judge struct {
	analyser   *analyser
	noise      bandLevels // noise floor of the room
	echoRatio  usualRatio // microphone's sound / our voice
	cleanRatio usualRatio // clean sound / our voice

	// Sums of power over the steps and bands of the current frame.
	heardPower  float32 // of the microphone's sound
	notEcho     float32 // the part of heardPower that is neither the usual echo nor noise
	cleanPower  float32 // of the clean sound
	unexplained float32 // the part of cleanPower that is neither the usual residue of our voice nor noise

	addedFrames float32 // number of recent frames with power added by the canceller, decaying with time
}

func newJudge() *judge {
	j := &judge{analyser: newAnalyser(), echoRatio: newUsualRatio(), cleanRatio: newUsualRatio()}
	for b := range j.noise {
		j.noise[b] = 10 // a first guess, which trackNoise corrects
	}
	return j
}

// processQuiet processes a step of the microphone's sound without our voice.
func (j *judge) processQuiet(mic *[echoStep]int16) {
	heard, _ := j.analyser.step(mic, mic)
	j.trackNoise(&heard)
}

// trackNoise lowers the noise floor to the level of a quieter step at once, and raises it by 2% per
// step at most. A sentence hardly changes it, because each pause between words lowers it again.
func (j *judge) trackNoise(heard *bandLevels) {
	for b, v := range heard {
		j.noise[b] = max(1, min(v, j.noise[b]*1.02))
	}
}

// processStep processes a step of the microphone's sound and of the clean sound. around holds
// the maximum levels of our voice over all lags that are possible: lags near the known lag, or
// all lags if the lag is unknown or the stamps are irregular. aligned holds the levels of our
// voice at the known lag; it is nil if the lag is unknown.
func (j *judge) processStep(mic, clean *[echoStep]int16, around, aligned *bandLevels) {
	heard, cleaned := j.analyser.step(mic, clean)
	silent := true
	for b := range bands {
		noise := noiseMargin * j.noise[b]
		echo := around[b] * j.echoRatio.maxRatio(b)
		residue := unknownLagFactor * echo
		if aligned != nil {
			residue = aligned[b] * j.cleanRatio.maxRatio(b)
		}
		j.heardPower += heard[b]
		j.notEcho += max(0, heard[b]-echo-noise)
		j.cleanPower += cleaned[b]
		j.unexplained += max(0, cleaned[b]-residue-noise)
		silent = silent && around[b] < j.noise[b]/10
	}
	if silent {
		j.trackNoise(&heard)
	}
	if aligned != nil {
		j.echoRatio.learn(&heard, around, &j.noise)
		j.cleanRatio.learn(&cleaned, aligned, &j.noise)
	}
}

// endFrame ends a frame of this number of steps. It reports whether a person is heard in the
// frame, and whether the canceller has diverged, that is, has more than doubled the power in two
// frames close together, which only happens with a wrong alignment. careful raises the thresholds
// for a person.
func (j *judge) endFrame(steps int, careful bool) (person, diverged bool) {
	minPower, factor := personLevel*float32(steps), float32(1)
	if careful {
		factor = carefulFactor
	}
	person = j.unexplained > minPower && j.unexplained > factor*minUnexplained*j.cleanPower && j.notEcho > factor*minNotEcho*j.heardPower
	j.addedFrames *= 0.9
	if j.cleanPower > minAddedFactor*minPower && j.cleanPower > maxAddedRatio*j.heardPower {
		person = false
		j.addedFrames++
	}
	if diverged = j.addedFrames > maxAddedFrames; diverged {
		j.addedFrames = 0
	}
	j.heardPower, j.notEcho, j.cleanPower, j.unexplained = 0, 0, 0, 0
	return person, diverged
}
