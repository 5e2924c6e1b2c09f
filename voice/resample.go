package voice

import "math"

// Resampler changes the rate of a stream of PCM by a fixed ratio. It is a polyphase filter: a
// sinc with a Kaiser window (beta 8), split into one short filter for each position of an
// output sample between two input samples. Aliases and images are more than 60 dB down. The
// pieces of a stream may have any length and join inaudibly.
type Resampler struct {
	up, down int       // output rate / input rate, in lowest terms
	taps     int       // number of coefficients in one phase of the filter
	filter   []float32 // coefficients of all up phases, one phase after the other
	past     []float32 // input that later output still depends on, oldest first
	phase    int       // distance of the next output sample from the first sample in past, in 1/up input samples
	out      []int16   // returned by Resample
}

// phaseTaps is the number of coefficients in a phase if the output rate is not lower than the
// input rate. With 48, the transition band is between 0.9 and 1.1 of the lower Nyquist rate.
// The number is always a multiple of four, because Resample adds up four sums in parallel.
const phaseTaps = 48

// NewResampler returns a resampler from one rate to another, both in Hz.
func NewResampler(from, to int) *Resampler {
	g := gcd(from, to)
	r := &Resampler{up: to / g, down: from / g, taps: phaseTaps}
	if from > to {
		r.taps = (phaseTaps*from/to + 3) / 4 * 4
	}
	r.filter = sincFilter(r.up, r.taps, math.Min(1, float64(to)/float64(from)))
	r.past = make([]float32, r.taps-1)
	return r
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// sincFilter returns the coefficients of the filter, one phase after the other. The sum of
// each phase is one. cutoff is a fraction of the input's Nyquist rate.
func sincFilter(up, taps int, cutoff float64) []float32 {
	const beta, passband = 8.0, 0.92
	filter := make([]float32, up*taps)
	centre := float64(taps) / 2
	for p := range up {
		phase := filter[p*taps : (p+1)*taps]
		sum := 0.0
		for k := range taps {
			// Distance of input sample k from the output sample, in input samples.
			d := float64(k) - centre + 1 - float64(p)/float64(up)
			x := cutoff * passband * d
			v := kaiser(d/centre, beta)
			if x != 0 {
				v *= math.Sin(math.Pi*x) / (math.Pi * x)
			}
			phase[k] = float32(v)
			sum += v
		}
		for k := range phase {
			phase[k] /= float32(sum)
		}
	}
	return filter
}

// kaiser is the Kaiser window at x in -1..1.
func kaiser(x, beta float64) float64 {
	if x <= -1 || x >= 1 {
		return 0
	}
	return bessel0(beta*math.Sqrt(1-x*x)) / bessel0(beta)
}

// bessel0 is the modified Bessel function of the first kind, order zero.
func bessel0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-12; k++ {
		term *= x * x / (4 * k * k)
		sum += term
	}
	return sum
}

// Resample returns the output for the next piece of input. The next call may overwrite the
// slice. If both rates are equal, Resample returns pcm itself.
func (r *Resampler) Resample(pcm []int16) []int16 {
	if r.up == r.down {
		return pcm
	}
	for _, s := range pcm {
		r.past = append(r.past, float32(s))
	}
	r.out = r.out[:0]
	at := 0
	for at+r.taps <= len(r.past) {
		coefficients := r.filter[r.phase*r.taps : (r.phase+1)*r.taps]
		window := r.past[at : at+r.taps]
		var a, b, c, d float32
		for len(coefficients) >= 4 && len(window) >= 4 {
			a += coefficients[0] * window[0]
			b += coefficients[1] * window[1]
			c += coefficients[2] * window[2]
			d += coefficients[3] * window[3]
			coefficients, window = coefficients[4:], window[4:]
		}
		r.out = append(r.out, clip(a+b+c+d))
		r.phase += r.down
		at += r.phase / r.up
		r.phase %= r.up
	}
	r.past = r.past[:copy(r.past, r.past[at:])]
	return r.out
}

// clip rounds a sample to 16 bits.
func clip(v float32) int16 {
	switch {
	case v >= math.MaxInt16:
		return math.MaxInt16
	case v <= math.MinInt16:
		return math.MinInt16
	}
	return int16(math.RoundToEven(float64(v))) // one instruction, unlike Round on some machines
}
