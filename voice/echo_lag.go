package voice

import "math"

// Constants of lagFinder; see aligner for the terms. Lengths are in samples at a quarter of
// MicRate, which is enough for the search. The search uses the differences of consecutive
// samples, because the low frequencies of a voice would blur the peak.
const (
	decimation   = 4
	lagEarly     = 220 * MicRate / 1000 / decimation // the echo is up to 220 ms earlier than the stamp says: the stamp may be three packets old
	lagLate      = 260 * MicRate / 1000 / decimation // or up to 260 ms later: the delay of the robot's buffers and of the air
	lagRange     = lagEarly + lagLate
	lagFrame     = MicFrame / decimation
	lagDecay     = 0.95                              // weight of the past after each frame: the sums cover about a second
	responseLead = 60 * MicRate / 1000 / decimation  // range of a room's response before the chosen lag
	responseTail = 120 * MicRate / 1000 / decimation // range of a room's response from the chosen lag on
)

// lagFinder correlates the microphone's sound with the loudspeaker's sound at every lag from
// -lagEarly to lagLate, over about the last second.
type lagFinder struct {
	frames int                          // number of frames since reset
	sum    [lagRange]float32            // correlation at each lag, the largest lag first
	mic    [lagFrame]float32            // the current frame
	ref    [lagFrame + lagRange]float32 // the loudspeaker's sound around the current frame
	scores [lagRange]float32            // work space of bestLag and shift
}

// reset forgets all frames.
func (l *lagFinder) reset() {
	clear(l.sum[:])
	l.frames = 0
}

// shift moves each correlation to a lag that is larger by this number of decimated samples.
func (l *lagFinder) shift(by int) {
	moved := &l.scores
	clear(moved[:])
	for i, v := range l.sum {
		if at := i - by; at >= 0 && at < lagRange {
			moved[at] = v
		}
	}
	l.sum = *moved
}

// add adds a frame of the microphone's sound, and the loudspeaker's sound from lagLate before
// the frame to lagEarly after it.
func (l *lagFinder) add(mic *[MicFrame]int16, ref *[MicFrame + lagRange*decimation]int16) {
	decimate(mic[:], l.mic[:])
	decimate(ref[:], l.ref[:])
	for at := range l.sum {
		sum := float32(0)
		x := l.ref[at:][:lagFrame]
		for i, m := range l.mic {
			sum += m * x[i]
		}
		l.sum[at] = l.sum[at]*lagDecay + sum
	}
	l.frames++
}

// decimate writes to out the mean of each group of decimation samples, minus the mean of the
// group before.
func decimate(pcm []int16, out []float32) {
	last := float32(0)
	for i := range out {
		mean := float32(0)
		for _, s := range pcm[decimation*i:][:decimation] {
			mean += float32(s) / decimation
		}
		if i == 0 {
			last = mean
		}
		out[i] = mean - last
		last = mean
	}
}

// roomResponse is the response of a room to a sound, as the correlation shows it: several
// peaks around the lag that the aligner uses.
type roomResponse struct {
	known bool // false: taps are zero
	taps  [responseLead + responseTail]float32
}

// storeResponse stores the response around a lag, in samples, in room.
func (l *lagFinder) storeResponse(room *roomResponse, lag int64) {
	from := lagLate - responseTail - int(lag)/decimation
	power := 0.0
	for i := range room.taps {
		room.taps[i] = 0
		if at := from + i; at >= 0 && at < lagRange {
			room.taps[i] = l.sum[at]
		}
		power += float64(room.taps[i]) * float64(room.taps[i])
	}
	room.known = power > 0
	for i := range room.taps {
		room.taps[i] /= float32(math.Sqrt(power) + 1e-9)
	}
}

// bestLag returns the lag, in samples, at which the correlation best matches the room's
// response, and the ratio of this match to the root mean square of all matches. If the
// response is unknown, bestLag uses the peak of the correlation; this is less reliable,
// because a room can have several peaks of similar height.
func (l *lagFinder) bestLag(room *roomResponse) (lag int64, ratio float64) {
	for i, v := range l.sum {
		l.scores[i] = max(v, -v)
		if room.known {
			l.scores[i] = l.similarity(room, i)
		}
	}
	at, power := 0, 0.0
	for i, v := range l.scores {
		power += float64(v) * float64(v)
		if v > l.scores[at] {
			at = i
		}
	}
	peak := float64(at)
	if at > 0 && at < lagRange-1 {
		// The top of the parabola through the peak and its two neighbours is more precise.
		left, top, right := float64(l.scores[at-1]), float64(l.scores[at]), float64(l.scores[at+1])
		if bend := left - 2*top + right; bend < 0 {
			peak += (left - right) / 2 / bend
		}
	}
	return int64(math.Round((lagLate - peak) * decimation)), float64(l.scores[at]) / (math.Sqrt(power/lagRange) + 1e-9)
}

// similarity returns how well the correlation around sum[at] matches the room's response.
func (l *lagFinder) similarity(room *roomResponse, at int) (sum float32) {
	from := at - responseTail
	low, high := max(0, -from), min(len(room.taps), lagRange-from)
	x := l.sum[from+low : from+high]
	for i, v := range room.taps[low:high] {
		sum += v * x[i]
	}
	return sum
}
