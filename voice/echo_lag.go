package voice

import "math"

// The lag is searched at a quarter of the rate, in the differences of the samples,
// because the low notes of a voice would blur the peak. The range covers the delay of a
// robot's buffers and the air, 260 ms, and a stamp that is three packets old.
const (
	thin       = 4
	lagEarly   = 220 * MicRate / 1000 / thin // the loudspeaker is ahead of its stamp
	lagLate    = 260 * MicRate / 1000 / thin // the sound is behind it
	lagRange   = lagEarly + lagLate
	lagFrame   = MicFrame / thin
	lagForget  = 0.95 // per frame: it remembers about a second
	answerLead = 60 * MicRate / 1000 / thin
	answerTail = 120 * MicRate / 1000 / thin
)

// lagFinder correlates the microphone's sound with the loudspeaker's at every lag in the
// range, over about the last second.
type lagFinder struct {
	frames int
	sum    [lagRange]float32 // latest lag first
	mic    [lagFrame]float32
	ref    [lagFrame + lagRange]float32
	match  [lagRange]float32
}

func (l *lagFinder) reset() {
	clear(l.sum[:])
	l.frames = 0
}

// shift moves the result to lags that are larger by this many.
func (l *lagFinder) shift(by int) {
	moved := &l.match
	clear(moved[:])
	for i, v := range l.sum {
		if at := i - by; at >= 0 && at < lagRange {
			moved[at] = v
		}
	}
	l.sum = *moved
}

// add adds a frame of the microphone's sound, and the loudspeaker's from lagLate before
// it to lagEarly after it.
func (l *lagFinder) add(mic *[MicFrame]int16, ref *[MicFrame + lagRange*thin]int16) {
	thinned(mic[:], l.mic[:])
	thinned(ref[:], l.ref[:])
	for at := range l.sum {
		sum := float32(0)
		x := l.ref[at:][:lagFrame]
		for i, m := range l.mic {
			sum += m * x[i]
		}
		l.sum[at] = l.sum[at]*lagForget + sum
	}
	l.frames++
}

// thinned writes the differences of the means of every few samples to out.
func thinned(pcm []int16, out []float32) {
	last := float32(0)
	for i := range out {
		mean := float32(0)
		for _, s := range pcm[thin*i:][:thin] {
			mean += float32(s) / thin
		}
		if i == 0 {
			last = mean
		}
		out[i] = mean - last
		last = mean
	}
}

// answerOf is a room's response as far as the correlation shows it: the lags around the
// chosen one.
type answerOf struct {
	known bool
	taps  [answerLead + answerTail]float32
}

// storeResponse stores the room's response around a lag, in samples.
func (l *lagFinder) storeResponse(a *answerOf, lag int64) {
	from := lagLate - answerTail - int(lag)/thin
	power := 0.0
	for i := range a.taps {
		a.taps[i] = 0
		if at := from + i; at >= 0 && at < lagRange {
			a.taps[i] = l.sum[at]
		}
		power += float64(a.taps[i]) * float64(a.taps[i])
	}
	a.known = power > 0
	for i := range a.taps {
		a.taps[i] /= float32(math.Sqrt(power) + 1e-9)
	}
}

// best returns the lag in samples at which the correlation best matches the known
// response, or has its peak if none is known, and how far that stands out, as a multiple
// of the mean. A room can have several peaks of similar height, which only its whole
// response tells apart.
func (l *lagFinder) best(a *answerOf) (lag int64, clear float64) {
	for i, v := range l.sum {
		l.match[i] = max(v, -v)
		if a.known {
			l.match[i] = l.alike(a, i)
		}
	}
	at, power := 0, 0.0
	for i, v := range l.match {
		power += float64(v) * float64(v)
		if v > l.match[at] {
			at = i
		}
	}
	peak := float64(at)
	if at > 0 && at < lagRange-1 {
		left, top, right := float64(l.match[at-1]), float64(l.match[at]), float64(l.match[at+1])
		if bend := left - 2*top + right; bend < 0 {
			peak += (left - right) / 2 / bend
		}
	}
	return int64(math.Round((lagLate - peak) * thin)), float64(l.match[at]) / (math.Sqrt(power/lagRange) + 1e-9)
}

// alike returns how well the correlation around an index matches the response.
func (l *lagFinder) alike(a *answerOf, at int) (sum float32) {
	from := at - answerTail
	low, high := max(0, -from), min(len(a.taps), lagRange-from)
	x := l.sum[from+low : from+high]
	for i, v := range a.taps[low:high] {
		sum += v * x[i]
	}
	return sum
}
