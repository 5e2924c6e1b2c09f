package simrobot

import (
	"math"
	"math/rand/v2"
	"time"

	"perch/device/xiaozhi"
	"perch/voice"
)

// AEC says where a build of the firmware cancels the echo of the robot's own voice.
type AEC string

// The values of AEC.
const (
	AECOff    AEC = "off"    // nowhere: by default the microphone is closed while the robot speaks
	AECDevice AEC = "device" // on the robot: it sends no echo
	AECServer AEC = "server" // on the server: hello has the feature, and packets name the packet being played
)

// mode returns the listen mode after a tap or a wake word.
func (a AEC) mode() xiaozhi.Mode {
	if a == AECOff {
		return xiaozhi.Auto
	}
	return xiaozhi.Realtime
}

// The echo of the robot's speaker in its microphone, on a desk.
const (
	echoGain   = -10                   // of the whole echo, in dB relative to the sound played
	echoDelay  = 30 * time.Millisecond // of the first echo, codec buffers included
	echoReverb = 60 * time.Millisecond // from there until it has decayed by 30 dB
)

// echo is the sound of the speaker as the microphone hears it.
type echo struct {
	paths     []path
	resampler *voice.Resampler
	rate      int       // of what was played last
	start     time.Time // of line
	line      []int16   // what was played, at MicRate
}

// path is the direct sound or a reflection.
type path struct {
	delay int // in samples
	gain  float32
}

// newEcho returns the response of a room, chosen by the seed: the direct sound, and
// a decaying reflection every millisecond or so.
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

// play adds sound that the speaker starts to play at the given time.
func (e *echo) play(at time.Time, rate int, pcm []int16) {
	if rate != e.rate {
		e.rate, e.resampler = rate, voice.NewResampler(rate, voice.MicRate)
	}
	if e.line == nil {
		e.start = at
	}
	sound := e.resampler.Resample(pcm)
	// The clocks count frames: less than a millisecond is a rounding error.
	if silence := e.index(at) - len(e.line); silence > voice.MicRate/1000 {
		e.line = append(e.line, make([]int16, silence)...)
	}
	e.line = append(e.line, sound...)
}

func (e *echo) index(at time.Time) int {
	return int(math.Round(at.Sub(e.start).Seconds() * voice.MicRate))
}

// mix adds the echo to a frame that the microphone recorded from the given time on.
// Frames must be mixed in order.
func (e *echo) mix(frame []int16, from time.Time) {
	if len(e.line) == 0 {
		return
	}
	at := e.index(from)
	for i := range frame {
		sum := float32(frame[i])
		for _, t := range e.paths {
			if k := at + i - t.delay; k >= 0 && k < len(e.line) {
				sum += t.gain * float32(e.line[k])
			}
		}
		frame[i] = int16(max(math.MinInt16, min(sum, math.MaxInt16)))
	}
	e.forget(at + len(frame) - e.paths[len(e.paths)-1].delay)
}

// forget drops the first n samples, which have faded.
func (e *echo) forget(n int) {
	switch n = min(n, len(e.line)); {
	case n < voice.MicRate: // less often than once a second
	case n == len(e.line):
		e.line = nil // the next sound starts a new one
	default:
		e.start = e.start.Add(time.Duration(n) * time.Second / voice.MicRate)
		e.line = append(e.line[:0], e.line[n:]...)
	}
}

// stamps is the firmware's timestamp_queue_: the timestamps of packets that were played, to
// be named by packets of the microphone.
type stamps []uint32

// mostStamps bounds the queue. A longer one drops its oldest, and that packet of the
// microphone has no timestamp.
const mostStamps = 3

// played records the timestamp of a packet, which is 0 if the server sends none.
func (s *stamps) played(stamp uint32) {
	if stamp != 0 {
		*s = append(*s, stamp)
	}
}

// next returns the timestamp for a packet of the microphone.
func (s *stamps) next() (stamp uint32) {
	if len(*s) == 0 {
		return 0
	}
	if len(*s) <= mostStamps {
		stamp = (*s)[0]
	}
	*s = (*s)[1:]
	return stamp
}
