package voice

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"time"
	"unsafe"

	webrtcvad "github.com/maxhawkins/go-webrtcvad"
)

// Edge is a change that the end-pointer found in a piece of sound.
type Edge int

// The edges of an utterance.
const (
	NoEdge      Edge = iota
	SpeechBegan      // enough voice to be speech
	SpeechEnded      // enough silence after it
)

// DefaultSilence is the silence after speech that ends an utterance. People pause for 300
// to 400 ms inside a sentence.
const DefaultSilence = 600 * time.Millisecond

// Thresholds on 20 ms windows, chosen on speech of three voices, breath, servo noise and
// DTX silence; endpoint_test.go checks them.
const (
	window       = MicRate * 20 / 1000 // samples
	beginWindows = 15                  // of the last 300 ms ...
	beginVoiced  = 8                   // ... 160 ms must sound like a voice to begin
	beginPitched = 4                   // ... and 80 ms must have a voice's pitch
	keepVoiced   = 2                   // of the last 100 ms: less does not prolong speech
	keepWindows  = 5
	aboveFloor   = 2.5   // voice is 8 dB above the noise floor
	lowestVoice  = 100.0 // RMS: -50 dBFS, quieter than a person in the room
)

// EndPointer finds where speech begins and ends in a stream of 16 kHz PCM: the WebRTC
// voice detector finds 20 ms windows that sound like a voice, a noise floor that follows
// the room excludes quiet ones, pitch separates vowels from breath and motors, and
// hangover bridges the pauses in a sentence. It measures time in samples, so a stream
// that stops needs a wall clock as well. It is not safe for concurrent use.
type EndPointer struct {
	vad     *webrtcvad.VAD
	silence int // windows
	rest    []int16

	recent   uint32           // one bit per window, newest lowest, 1 sounds like a voice
	pitched  uint32           // the same, 1 has a voice's pitch
	tail     [pitchSpan]int16 // the latest sound
	floor    float64
	speaking bool
	quiet    int    // windows since voice was last heard
	asked    string // text of the current speech last passed to settled,
	settled  bool   // and the answer
}

// NewEndPointer returns an end-pointer that ends speech after the given silence
// (DefaultSilence if zero).
func NewEndPointer(silence time.Duration) (*EndPointer, error) {
	vad, err := webrtcvad.New()
	if err != nil {
		return nil, fmt.Errorf("make the voice detector: %w", err)
	}
	// Mode 3 is the least easily fooled by noise.
	if err := vad.SetMode(3); err != nil {
		return nil, fmt.Errorf("set up the voice detector: %w", err)
	}
	e := &EndPointer{vad: vad, rest: make([]int16, 0, window)}
	e.SetSilence(silence)
	e.Reset()
	return e, nil
}

// SetSilence changes the silence that ends an utterance (DefaultSilence if zero).
func (e *EndPointer) SetSilence(silence time.Duration) {
	e.silence = int(cmp.Or(silence, DefaultSilence) / (20 * time.Millisecond))
}

// Reset drops the current speech, but keeps the noise floor.
func (e *EndPointer) Reset() {
	e.recent, e.pitched, e.speaking, e.quiet, e.rest = 0, 0, false, 0, e.rest[:0]
}

// Speaking reports whether speech has begun and not ended.
func (e *EndPointer) Speaking() bool { return e.speaking }

// Quiet returns how long no voice has been heard, during speech or since its end.
func (e *EndPointer) Quiet() time.Duration { return time.Duration(e.quiet) * 20 * time.Millisecond }

// A complete sentence needs less silence at its end: it ends the speech after
// settledSilence, if the recognizer's text has not changed for settledFor, and the
// recognizer is at most settledBehind late.
const (
	settledSilence = 240 * time.Millisecond
	settledFor     = 100 * time.Millisecond
	settledBehind  = 2 * FrameDuration
)

// Finished reports whether the current speech u has ended before the usual silence:
// settled reports whether nothing that changes its meaning can follow the recognizer's
// text so far. It is called once per text.
func (e *EndPointer) Finished(u *Utterance, settled func(text string) bool) bool {
	if !e.speaking || e.Quiet() < settledSilence {
		return false
	}
	heard := u.Supposed()
	if heard.Text == "" || heard.Stood < settledFor || heard.Behind > settledBehind {
		return false
	}
	if heard.Text != e.asked {
		e.asked, e.settled = heard.Text, settled(heard.Text)
	}
	if !e.settled {
		return false
	}
	e.endSpeech()
	return true
}

func (e *EndPointer) endSpeech() { e.speaking, e.recent, e.pitched = false, 0, 0 }

// Voiced reports whether a voice was heard in the last 100 ms.
func (e *EndPointer) Voiced() bool { return ones(e.recent, keepWindows) > 0 }

// Feed processes the next piece of sound and returns the last edge in it.
func (e *EndPointer) Feed(pcm []int16) Edge {
	edge := NoEdge
	for len(pcm) > 0 {
		n := min(window-len(e.rest), len(pcm))
		e.rest = append(e.rest, pcm[:n]...)
		pcm = pcm[n:]
		if len(e.rest) < window {
			break
		}
		if found := e.window(e.rest); found != NoEdge {
			edge = found
		}
		e.rest = e.rest[:0]
	}
	return edge
}

func (e *EndPointer) window(pcm []int16) Edge {
	copy(e.tail[:], e.tail[len(pcm):])
	copy(e.tail[len(e.tail)-len(pcm):], pcm)
	voice := e.voiced(pcm)
	e.recent = e.recent<<1 | bit(voice)
	e.pitched = e.pitched<<1 | bit(voice && hasPitch(&e.tail))
	if !e.speaking {
		if ones(e.recent, beginWindows) < beginVoiced || ones(e.pitched, beginWindows) < beginPitched {
			return NoEdge
		}
		e.speaking, e.quiet, e.asked = true, 0, ""
		return SpeechBegan
	}
	e.quiet++
	if voice && ones(e.recent, keepWindows) >= keepVoiced && ones(e.pitched, beginWindows) > 0 {
		e.quiet = 0
	}
	if e.quiet < e.silence {
		return NoEdge
	}
	e.endSpeech()
	return SpeechEnded
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func ones(recent uint32, of int) int { return bits.OnesCount32(recent & (1<<of - 1)) }

// voiced reports whether a window sounds like a voice and is loud enough.
func (e *EndPointer) voiced(pcm []int16) bool {
	level := rms(pcm)
	// The detector keeps its own statistics and must see every window. It takes
	// samples in native byte order, which is little-endian on all supported
	// machines.
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&pcm[0])), 2*len(pcm))
	voice, err := e.vad.Process(MicRate, bytes)
	voice = voice && err == nil && level > lowestVoice && level > aboveFloor*e.floor
	e.trackFloor(level, voice)
	return voice
}

// trackFloor lowers the floor at once in a quieter room and raises it over some seconds, so
// that a fan becomes part of the floor but a sentence does not.
func (e *EndPointer) trackFloor(level float64, voice bool) {
	rise := 1.02 // per window: about tenfold in 2.4 s
	if voice {
		rise = 1.002
	}
	e.floor = max(1, min(level, max(e.floor, 1)*rise))
}

func rms(pcm []int16) float64 {
	sum := 0.0
	for _, s := range pcm {
		sum += float64(s) * float64(s)
	}
	return math.Sqrt(sum / float64(len(pcm)))
}
