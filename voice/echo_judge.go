package voice

import "math"

// Thresholds of the judge. A person is loud, and differs both from what the canceller
// usually leaves and from what the room usually returns.
const (
	unexplained = 0.35    // fraction of the rest that must exceed what the canceller leaves
	unechoed    = 0.15    // fraction of the sound that must exceed what the room returns
	carefulBy   = 1.7     // both, if the alignment may be wrong unnoticed
	personLevel = 80 * 80 // mean square of the level: -52 dBFS
	addedTo     = 2       // the canceller leaves at most this multiple of what was heard,
	addedLoud   = 4       // where it is this much louder than a person,
	addedOften  = 1.5     // except once in half a second

	carefulGain   = 3   // dB: until learned, the echo is as loud as our voice plus this,
	carefulSpread = 6   // dB, plus or minus this
	carefulSteps  = 4   // weighted as this many steps of experience
	memorySteps   = 150 // of loud speech, 3 s, within which the room may change
	spreads       = 1.5 // above the mean is still usual
	aboveNoise    = 3   // times the noise is still noise
	unsureBy      = 4   // factor of expected echo while its lag is unknown
)

// custom is how loud a sound usually is relative to another, by band, in dB.
type custom struct {
	gain, spread, steps [bands]float32
}

func newCustom() (c custom) {
	for b := range bands {
		c.gain[b], c.spread[b], c.steps[b] = carefulGain, carefulSpread, carefulSteps
	}
	return c
}

// most returns how many times louder than the other the sound usually is at most.
func (c *custom) most(b int) float32 { return fromDB(c.gain[b] + spreads*c.spread[b]) }

func fromDB(db float32) float32 { return float32(math.Pow(10, float64(db)/10)) }

// learn updates the statistics by a step of both sounds. Outliers are limited, so that a
// person does not soon count as usual; but all steps count, so that wrong statistics do
// not last.
func (c *custom) learn(sound, beside, noise *levels) {
	for b := range bands {
		if beside[b]*fromDB(c.gain[b]) < 10*noise[b] {
			continue
		}
		off := float32(10*math.Log10(float64(sound[b]/beside[b])+1e-9)) - c.gain[b]
		off = max(-20, min(off, 2*c.spread[b]+3))
		c.steps[b] = min(c.steps[b]+1, memorySteps)
		c.gain[b] += off / c.steps[b]
		off -= off / c.steps[b]
		c.spread[b] += (1.25*min(max(off, -off), 12) - c.spread[b]) / c.steps[b]
	}
}

// judge distinguishes our voice from a person's. It compares what the canceller hears
// with what it leaves, and knows how loud our voice is in each band.
type judge struct {
	analyser *analyser
	noise    levels
	room     custom // what is heard, relative to what was played
	rest     custom // what the canceller leaves of it

	heard, echoless   float32 // in the current frame: the sound, and the part of it that is no echo
	left, unaccounted float32 // the same of the canceller's rest
	added             float32 // how often the rest was louder lately
}

func newJudge() *judge {
	j := &judge{analyser: newAnalyser(), room: newCustom(), rest: newCustom()}
	for b := range j.noise {
		j.noise[b] = 10
	}
	return j
}

// quiet processes a step without any sound of ours.
func (j *judge) quiet(mic *[echoStep]int16) {
	heard, _ := j.analyser.step(mic, mic)
	j.trackNoise(&heard)
}

// trackNoise lowers the noise floor at once, and raises it so slowly that a sentence does
// not count.
func (j *judge) trackNoise(heard *levels) {
	for b, v := range heard {
		j.noise[b] = max(1, min(v, j.noise[b]*1.02))
	}
}

// step processes a step of the microphone's sound, of the canceller's rest, and of the
// levels of our voice that may be in it: those of all lags, and those of the alignment,
// if known.
func (j *judge) step(mic, clean *[echoStep]int16, around, aligned *levels) {
	heard, left := j.analyser.step(mic, clean)
	silent := true
	for b := range bands {
		noise := aboveNoise * j.noise[b]
		echo := around[b] * j.room.most(b)
		rest := unsureBy * echo
		if aligned != nil {
			rest = aligned[b] * j.rest.most(b)
		}
		j.heard += heard[b]
		j.echoless += max(0, heard[b]-echo-noise)
		j.left += left[b]
		j.unaccounted += max(0, left[b]-rest-noise)
		silent = silent && around[b] < j.noise[b]/10
	}
	if silent {
		j.trackNoise(&heard)
	}
	if aligned != nil {
		j.room.learn(&heard, around, &j.noise)
		j.rest.learn(&left, aligned, &j.noise)
	}
}

// verdict ends a frame of some steps. It reports whether somebody else is heard in it,
// and whether the canceller has diverged: it then adds more than it removes again and
// again, as it does only on the wrong sound.
func (j *judge) verdict(steps int, careful bool) (somebody, astray bool) {
	loud, more := personLevel*float32(steps), float32(1)
	if careful {
		more = carefulBy
	}
	somebody = j.unaccounted > loud && j.unaccounted > more*unexplained*j.left && j.echoless > more*unechoed*j.heard
	j.added *= 0.9
	if j.left > addedLoud*loud && j.left > addedTo*j.heard {
		somebody = false
		j.added++
	}
	if astray = j.added > addedOften; astray {
		j.added = 0
	}
	j.heard, j.echoless, j.left, j.unaccounted = 0, 0, 0, 0
	return somebody, astray
}
