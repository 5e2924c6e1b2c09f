package voice

import "math"

// How the judge decides. A person is loud, and is neither what the canceller
// usually leaves over nor what the room usually gives back.
const (
	unexplained = 0.35    // of what is left must be more than the canceller leaves
	unechoed    = 0.15    // of what was heard must be more than the room gives back
	carefulBy   = 1.7     // both, where the alignment may be wrong unnoticed
	personLevel = 80 * 80 // mean square of it: -52 dBFS
	addedTo     = 2       // the canceller leaves at most this much of what was heard,
	addedLoud   = 4       // where it is this much louder than a person,
	addedOften  = 1.5     // save for one time in half a second

	carefulGain   = 3   // dB: until it is known, the echo is as loud as our voice, and more,
	carefulSpread = 6   // dB, give or take as much
	carefulSteps  = 4   // which this many steps of experience outweigh
	memorySteps   = 150 // of loud speech, 3 s, in which the room may change
	spreads       = 1.5 // above the mean is still usual
	aboveNoise    = 3   // times the noise is still noise
	unsureBy      = 4   // times more echo is reckoned with while its lag is not known
)

// custom is how loud a sound usually is beside another, band by band, in dB.
type custom struct {
	gain, spread, steps [bands]float32
}

func newCustom() (c custom) {
	for b := range bands {
		c.gain[b], c.spread[b], c.steps[b] = carefulGain, carefulSpread, carefulSteps
	}
	return c
}

// most is the factor by which the sound may exceed the other and be usual.
func (c *custom) most(b int) float32 { return fromDB(c.gain[b] + spreads*c.spread[b]) }

func fromDB(db float32) float32 { return float32(math.Pow(10, float64(db)/10)) }

// learn takes a step of both sounds. What is far off counts as less far, so
// that a person does not soon become custom; but everything counts, so that a
// wrong custom cannot last.
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

// judge distinguishes our own voice from a person's. It gets what the canceller
// hears and what it leaves, and knows how loud our voice is in each band.
type judge struct {
	analyser *analyser
	noise    levels
	room     custom // what is heard, beside what was played
	rest     custom // what the canceller leaves of it

	heard, echoless   float32 // of the frame under way: what was heard, and what of it is no echo
	left, unaccounted float32 // the same of what the canceller left
	added             float32 // how often it was lately more
}

func newJudge() *judge {
	j := &judge{analyser: newAnalyser(), room: newCustom(), rest: newCustom()}
	for b := range j.noise {
		j.noise[b] = 10
	}
	return j
}

// quiet takes a step in which nothing of ours can be heard.
func (j *judge) quiet(mic *[echoStep]int16) {
	heard, _ := j.analyser.step(mic, mic)
	j.follow(&heard)
}

// follow lets the noise sink at once, and rise so slowly that a sentence does
// not count.
func (j *judge) follow(heard *levels) {
	for b, v := range heard {
		j.noise[b] = max(1, min(v, j.noise[b]*1.02))
	}
}

// step takes a step of what was heard, of what is left of it, and the levels
// of ours that may be in it: of all around, and of what the alignment says,
// where there is one.
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
		j.follow(&heard)
	}
	if aligned != nil {
		j.room.learn(&heard, around, &j.noise)
		j.rest.learn(&left, aligned, &j.noise)
	}
}

// verdict ends a frame of some steps. It reports whether somebody else is in
// it, and whether the canceller has gone astray: again and again it adds more
// than it takes away, as only one that works on the wrong sound does.
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
