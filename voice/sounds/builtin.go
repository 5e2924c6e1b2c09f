package sounds

import (
	"math"
	"math/rand/v2"

	"perch/voice"
)

// builtIn returns the functions that generate the built-in sounds; the key is the name.
func builtIn() map[string]func() buffer {
	return map[string]func() buffer{"alarm": alarm, "chime": chime, "purr": purr}
}

// buffer is a generated sound: samples at voice.SpeakerRate.
type buffer []float64

// newBuffer returns silence of a duration.
func newBuffer(seconds float64) buffer { return make(buffer, int(seconds*voice.SpeakerRate)) }

// maxSample is the greatest sample of a finished sound, as a fraction of full scale. It leaves
// headroom for the codec.
const maxSample = 0.7

// pcm returns the sound, scaled to maxSample. The end is faded out, because an abrupt end
// would click.
func (b buffer) pcm() []int16 {
	const fade = voice.SpeakerRate / 50
	peak := 0.0
	for i := range b {
		if left := len(b) - i; left < fade {
			b[i] *= float64(left) / fade
		}
		peak = max(peak, math.Abs(b[i]))
	}
	out := make([]int16, len(b))
	for i, v := range b {
		out[i] = toPCM(v / peak * maxSample)
	}
	return out
}

// partial is a decaying tone.
type partial struct {
	hertz, level float64
	decay        float64 // time in seconds until the level has decayed to 1/e
}

// strike adds tones that begin at the same time and decay, like those of a bell. Times are in
// seconds.
func (b buffer) strike(start, length float64, tones ...partial) {
	const attack = 0.002
	from := int(start * voice.SpeakerRate)
	for i := range min(int(length*voice.SpeakerRate), len(b)-from) {
		t := float64(i) / voice.SpeakerRate
		rise := min(1, t/attack)
		for _, p := range tones {
			b[from+i] += rise * p.level * math.Exp(-t/p.decay) * math.Sin(2*math.Pi*p.hertz*t)
		}
	}
}

// bell returns the partials, some of them inharmonic, of a small bell.
func bell(hertz float64) []partial {
	return []partial{
		{hertz, 1, 0.38}, {2 * hertz, 0.45, 0.24}, {2.98 * hertz, 0.25, 0.14},
		{4.2 * hertz, 0.12, 0.08}, {5.43 * hertz, 0.06, 0.05},
	}
}

// chime returns two tones of a bell, G and E.
func chime() buffer {
	b := newBuffer(1.6)
	b.strike(0, 1.6, bell(783.99)...)
	b.strike(0.42, 1.2, bell(659.26)...)
	return b
}

// alarm returns three rising beeps, four times, at frequencies that small speakers play
// loudest.
func alarm() buffer {
	b := newBuffer(4)
	for repetition := range 4 {
		for i, hertz := range []float64{1046.5, 1318.5, 1568} {
			b.beep(float64(repetition)+0.17*float64(i), 0.13, hertz)
		}
	}
	return b
}

// beep adds a tone with odd harmonics, which make it sharp. Times are in seconds.
func (b buffer) beep(start, length, hertz float64) {
	const edge = 0.008
	from := int(start * voice.SpeakerRate)
	for i := range int(length * voice.SpeakerRate) {
		t := float64(i) / voice.SpeakerRate
		level := min(1, t/edge, (length-t)/edge)
		phase := 2 * math.Pi * hertz * t
		b[from+i] += level * (math.Sin(phase) + math.Sin(3*phase)/3 + math.Sin(5*phase)/6)
	}
}

// breath is one breath of a purring cat, in or out.
type breath struct {
	start, length float64 // in seconds
	rate          float64 // pulses per second
	level         float64
	brightness    float64 // level of the higher tones
}

// purr returns the sound of a purring cat, about 25 pulses per second. Small speakers cannot
// play this frequency, so each pulse is a short thud of higher tones.
func purr() buffer {
	b := newBuffer(3.1)
	random := rand.New(rand.NewPCG(25, 3)) // the sound is always the same
	for _, br := range []breath{
		{0, 0.85, 25, 1, 0.5}, {0.9, 0.6, 28, 0.6, 0.9}, {1.55, 0.85, 24.5, 1, 0.5}, {2.45, 0.6, 27.5, 0.55, 0.9},
	} {
		for t := 0.0; t < br.length; t += (1 + 0.03*random.NormFloat64()) / br.rate {
			swell := math.Pow(math.Sin(math.Pi*min(1, (t+0.04)/(br.length+0.08))), 0.6)
			b.thud(br.start+t, br.level*swell*(1+0.1*random.NormFloat64()), br.brightness, random)
		}
	}
	return b
}

// thud adds a pulse of a purr: tones, and 25 ms of noise for the breath.
func (b buffer) thud(start, level, brightness float64, random *rand.Rand) {
	b.strike(start, 0.05,
		partial{150, 0.5 * level, 0.012}, partial{285, level, 0.010}, partial{470, 0.9 * level, 0.008},
		partial{760, 0.8 * brightness * level, 0.006}, partial{1180, 0.3 * brightness * level, 0.004})
	from, noise := int(start*voice.SpeakerRate), 0.0
	for i := range min(voice.SpeakerRate/40, len(b)-from) {
		t := float64(i) / voice.SpeakerRate
		noise += 0.12 * (random.NormFloat64() - noise) // a low-pass filter
		b[from+i] += 0.5 * brightness * level * noise * math.Exp(-t/0.009)
	}
}
