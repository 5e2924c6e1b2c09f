package simrobot

import (
	"math"
	"math/rand/v2"
	"time"

	"perch/device/xiaozhi"
	"perch/voice"
)

// AEC (acoustic echo cancellation) says where the echo of the robot's own voice is cancelled.
type AEC string

// The values of AEC.
const (
	AECOff    AEC = "off"    // nowhere; by default the microphone is closed while the robot speaks
	AECDevice AEC = "device" // on the robot, which sends no echo
	AECServer AEC = "server" // on the server: with framing 2, the robot's packets carry the timestamps of packets that it played
)

// mode returns the listening mode after a tap or a wake word.
func (a AEC) mode() xiaozhi.Mode {
	if a == AECOff {
		return xiaozhi.Auto
	}
	return xiaozhi.Realtime
}

// The echo of the robot's speaker in its microphone when it stands on a desk.
const (
	echoGain   = -10                   // power of the whole echo in dB, relative to the played sound
	echoDelay  = 30 * time.Millisecond // delay of the direct sound, including codec buffers
	echoReverb = 60 * time.Millisecond // time that reflections take to decay by 30 dB after the direct sound
)

// echo computes the sound of the speaker as the microphone hears it.
type echo struct {
	paths     []path // sorted by delay
	resampler *voice.Resampler
	rate      int       // rate of the latest played sound in Hz
	start     time.Time // time of the first sample in line
	line      []int16   // delay line: the latest sound, at voice.MicRate; forget drops sound whose echo is over
}

// path is the path of the direct sound or of a reflection from the speaker to the microphone.
type path struct {
	delay int // in samples
	gain  float32
}

// newEcho returns the echo in a random room, which is always the same for the same seed. The echo
// consists of the direct sound and of reflections, about one per millisecond, which grow weaker.
func newEcho(seed uint64) *echo {
	e := &echo{}
	random := rand.New(rand.NewPCG(seed, 2))
	begin, end := samples(echoDelay), samples(echoDelay+echoReverb)
	power := 0.0
	for at := begin; at <= end; at += 8 + random.IntN(16) {
		gain := 1.0
		if len(e.paths) > 0 {
			gain = (random.Float64() - 0.5) * math.Pow(10, -1.5*float64(at-begin)/float64(end-begin))
		}
		power += gain * gain
		e.paths = append(e.paths, path{at, float32(gain)})
	}
	scale := float32(math.Pow(10, echoGain/20.0) / math.Sqrt(power))
	for i := range e.paths {
		e.paths[i].gain *= scale
	}
	return e
}

// play adds sound that the speaker starts to play at the given time. rate is in Hz.
func (e *echo) play(at time.Time, rate int, pcm []int16) {
	if rate != e.rate {
		e.rate, e.resampler = rate, voice.NewResampler(rate, voice.MicRate)
	}
	if e.line == nil {
		e.start = at
	}
	sound := e.resampler.Resample(pcm)
	// A gap of at most a millisecond is a rounding error.
	if silence := e.index(at) - len(e.line); silence > voice.MicRate/1000 {
		e.line = append(e.line, make([]int16, silence)...)
	}
	e.line = append(e.line, sound...)
}

// index returns the index of a time in e.line.
func (e *echo) index(at time.Time) int {
	return int(math.Round(at.Sub(e.start).Seconds() * voice.MicRate))
}

// mix adds the echo to a frame that the microphone began to record at the time from. Frames must
// be mixed in the order of their times.
func (e *echo) mix(frame []int16, from time.Time) {
	if len(e.line) == 0 {
		return
	}
	at := e.index(from)
	for i := range frame {
		sum := float32(frame[i])
		for _, p := range e.paths {
			if k := at + i - p.delay; k >= 0 && k < len(e.line) {
				sum += p.gain * float32(e.line[k])
			}
		}
		frame[i] = int16(max(math.MinInt16, min(sum, math.MaxInt16)))
	}
	e.forget(at + len(frame) - e.paths[len(e.paths)-1].delay)
}

// forget drops the first n samples of e.line, whose echo is over.
func (e *echo) forget(n int) {
	switch n = min(n, len(e.line)); {
	case n < voice.MicRate: // wait until at least a second can be dropped, because this copies the remaining samples
	case n == len(e.line):
		e.line = nil // play then starts a new line
	default:
		e.start = e.start.Add(time.Duration(n) * time.Second / voice.MicRate)
		e.line = append(e.line[:0], e.line[n:]...)
	}
}

// stamps is the firmware's timestamp_queue_: a queue of the timestamps of played packets. The
// microphone attaches them to its packets.
type stamps []uint32

// maxStamps is the maximum length of a queue from which next returns a timestamp. From a longer
// queue, next drops the oldest timestamp and returns 0.
const maxStamps = 3

// played appends the timestamp of a played packet. It ignores 0, which means that the packet
// had no timestamp.
func (s *stamps) played(stamp uint32) {
	if stamp != 0 {
		*s = append(*s, stamp)
	}
}

// next removes the first timestamp and returns it for a packet of the microphone. It returns 0
// if the queue is empty.
func (s *stamps) next() (stamp uint32) {
	if len(*s) == 0 {
		return 0
	}
	if len(*s) <= maxStamps {
		stamp = (*s)[0]
	}
	*s = (*s)[1:]
	return stamp
}
