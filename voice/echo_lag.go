package voice

import "math"

// How the lag is searched: at a quarter of the rate, in the differences of
// the samples, because the low notes of a voice would blur the peak. The range
// covers what a robot's buffers and the air delay, 260 ms, and a stamp that is
// three packets old.
const (
	thin       = 4
	lagEarly   = 220 * MicRate / 1000 / thin // the loudspeaker is ahead of its stamp
	lagLate    = 260 * MicRate / 1000 / thin // the sound is behind it
	lagRange   = lagEarly + lagLate
	lagFrame   = MicFrame / thin
	lagForget  = 0.95 // a frame: it remembers about a second
	answerLead = 60 * MicRate / 1000 / thin
	answerTail = 120 * MicRate / 1000 / thin
)

// lagFinder correlates what the microphone heard with what the loudspeaker
// was given, at every lag in the range, over about the last second.
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

// shift moves what was found to lags that are larger by so many.
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

// add takes a frame of the microphone's sound, and the loudspeaker's from
// lagLate before it to lagEarly after it.
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

// thinned puts the differences of the means of every few samples into out.
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

// answerOf is how a room answers, as far as the correlation shows it: the
// lags around the one that was chosen.
type answerOf struct {
	known bool
	taps  [answerLead + answerTail]float32
}

// keep remembers the room's answer around a lag, in samples.
func (l *lagFinder) keep(a *answerOf, lag int64) {
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

// find returns the lag in samples at which the correlation looks most like an
// answer that is known, or has its peak where none is; and how far that
// stands out, as a multiple of the mean. One room can have several peaks of
// like height, and only its whole answer shows which is which.
func (l *lagFinder) find(a *answerOf) (lag int64, clear float64) {
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

// alike is how well the correlation around an index looks like an answer.
func (l *lagFinder) alike(a *answerOf, at int) (sum float32) {
	from := at - answerTail
	low, high := max(0, -from), min(len(a.taps), lagRange-from)
	x := l.sum[from+low : from+high]
	for i, v := range a.taps[low:high] {
		sum += v * x[i]
	}
	return sum
}
