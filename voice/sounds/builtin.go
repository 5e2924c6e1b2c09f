package sounds

import (
	"math"
	"math/rand/v2"

	"perch/voice"
)

// builtIn returns the generators of the built-in sounds, by name. Each is deterministic.
func builtIn() map[string]func() buffer {
	return map[string]func() buffer{"alarm": alarm, "chime": chime, "purr": purr}
}

// buffer is a sound being made, in samples at the rate of robots.
type buffer []float64

func newBuffer(seconds float64) buffer { return make(buffer, int(seconds*voice.SpeakerRate)) }

// loudest is the highest sample of a finished sound, with headroom for the codec.
const loudest = 0.7

// pcm returns the sound at the common loudness. Its end fades out, since a speaker that
// stops at once clicks.
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
		out[i] = toPCM(v / peak * loudest)
	}
	return out
}

// partial is one tone of a sound.
type partial struct {
	hertz, level float64
	decay        float64 // seconds until it has a third of its level
}

// strike adds tones that begin together and decay, as of a bell.
func (b buffer) strike(at, length float64, tones ...partial) {
	const attack = 0.002
	from := int(at * voice.SpeakerRate)
	for i := range min(int(length*voice.SpeakerRate), len(b)-from) {
		t := float64(i) / voice.SpeakerRate
		rise := min(1, t/attack)
		for _, p := range tones {
			b[from+i] += rise * p.level * math.Exp(-t/p.decay) * math.Sin(2*math.Pi*p.hertz*t)
		}
	}
}

// bell returns the partials of a small bell, including the inharmonic ones.
func bell(hertz float64) []partial {
	return []partial{
		{hertz, 1, 0.38}, {2 * hertz, 0.45, 0.24}, {2.98 * hertz, 0.25, 0.14},
		{4.2 * hertz, 0.12, 0.08}, {5.43 * hertz, 0.06, 0.05},
	}
}

// chime is two tones of a bell, the second a third lower: G and E.
func chime() buffer {
	b := newBuffer(1.6)
	b.strike(0, 1.6, bell(783.99)...)
	b.strike(0.42, 1.2, bell(659.26)...)
	return b
}

// alarm is four calls of three rising beeps, in the band that small speakers play
// loudest.
func alarm() buffer {
	b := newBuffer(4)
	for call := range 4 {
		for i, hertz := range []float64{1046.5, 1318.5, 1568} {
			b.beep(float64(call)+0.17*float64(i), 0.13, hertz)
		}
	}
	return b
}

// beep adds a tone with odd harmonics, which make it sharp.
func (b buffer) beep(at, length, hertz float64) {
	const edge = 0.008
	from := int(at * voice.SpeakerRate)
	for i := range int(length * voice.SpeakerRate) {
		t := float64(i) / voice.SpeakerRate
		level := min(1, t/edge, (length-t)/edge)
		phase := 2 * math.Pi * hertz * t
		b[from+i] += level * (math.Sin(phase) + math.Sin(3*phase)/3 + math.Sin(5*phase)/6)
	}
}

// breath is a cat's breath, in or out.
type breath struct {
	at, length float64
	rate       float64 // of the purr, pulses per second
	level      float64
	bright     float64 // share of higher tones
}

// purr is a cat that breathes out and in: some 25 pulses per second, too low for a small
// speaker, so that the tones of each short thud are what is heard.
func purr() buffer {
	b := newBuffer(3.1)
	dice := rand.New(rand.NewPCG(25, 3))
	for _, br := range []breath{
		{0, 0.85, 25, 1, 0.5}, {0.9, 0.6, 28, 0.6, 0.9}, {1.55, 0.85, 24.5, 1, 0.5}, {2.45, 0.6, 27.5, 0.55, 0.9},
	} {
		for t := 0.0; t < br.length; t += (1 + 0.03*dice.NormFloat64()) / br.rate {
			swell := math.Pow(math.Sin(math.Pi*min(1, (t+0.04)/(br.length+0.08))), 0.6)
			b.thud(br.at+t, br.level*swell*(1+0.1*dice.NormFloat64()), br.bright, dice)
		}
	}
	return b
}

// thud is one pulse of a purr.
func (b buffer) thud(at, level, bright float64, dice *rand.Rand) {
	b.strike(at, 0.05,
		partial{150, 0.5 * level, 0.012}, partial{285, level, 0.010}, partial{470, 0.9 * level, 0.008},
		partial{760, 0.8 * bright * level, 0.006}, partial{1180, 0.3 * bright * level, 0.004})
	from, soft := int(at*voice.SpeakerRate), 0.0
	for i := range min(voice.SpeakerRate/40, len(b)-from) { // its breath, 25 ms
		t := float64(i) / voice.SpeakerRate
		soft += 0.12 * (dice.NormFloat64() - soft) // low-passed, without hiss
		b[from+i] += 0.5 * bright * level * soft * math.Exp(-t/0.009)
	}
}
