package voice

import (
	"fmt"
	"math"
	"time"
	"unsafe"

	webrtcvad "github.com/maxhawkins/go-webrtcvad"
)

// Edge is what the end-pointer found at the end of a piece of sound.
type Edge int

// The edges of an utterance.
const (
	NoEdge      Edge = iota
	SpeechBegan      // enough voice to be speech
	SpeechEnded      // enough silence after it
)

// DefaultSilence is how long it must be quiet after speech before the
// utterance counts as ended. People pause for 300 to 400 ms inside a sentence.
const DefaultSilence = 600 * time.Millisecond

// How 20 ms windows become speech. The numbers were chosen on speech of three
// voices, breath, servo noise and DTX silence; endpoint_test.go holds them.
const (
	window       = MicRate * 20 / 1000 // samples
	beginWindows = 15                  // of the last 300 ms ...
	beginVoiced  = 9                   // ... 180 ms must be voice to begin
	keepVoiced   = 2                   // of the last 100 ms: less does not prolong speech
	keepWindows  = 5
	aboveFloor   = 2.5   // voice is 8 dB above the noise floor
	lowestVoice  = 120.0 // RMS: -49 dBFS, quieter than a person in the room
)

// EndPointer finds where speech begins and ends in a stream of 16 kHz PCM:
// the WebRTC voice detector says which 20 ms windows sound like a voice, a
// noise floor that follows the room says which are loud enough, and hangover
// bridges the pauses in a sentence. It keeps time by samples, so a stream
// that stops needs a wall clock beside it. One goroutine uses it.
type EndPointer struct {
	vad     *webrtcvad.VAD
	silence int // windows
	rest    []int16

	recent   uint32 // one bit per window, newest lowest, 1 is voice
	floor    float64
	speaking bool
	quiet    int // windows since voice was last heard
}

// NewEndPointer returns an end-pointer that waits for the given silence
// (DefaultSilence when zero).
func NewEndPointer(silence time.Duration) (*EndPointer, error) {
	vad, err := webrtcvad.New()
	if err != nil {
		return nil, fmt.Errorf("make the voice detector: %w", err)
	}
	// Mode 3 is the least easily fooled by noise.
	if err := vad.SetMode(3); err != nil {
		return nil, fmt.Errorf("set up the voice detector: %w", err)
	}
	if silence == 0 {
		silence = DefaultSilence
	}
	e := &EndPointer{vad: vad, silence: int(silence / (20 * time.Millisecond)), rest: make([]int16, 0, window)}
	e.Reset()
	return e, nil
}

// Reset forgets speech under way, but keeps what is known of the room's noise.
func (e *EndPointer) Reset() {
	e.recent, e.speaking, e.quiet, e.rest = 0, false, 0, e.rest[:0]
}

// Speaking reports whether speech has begun and not ended.
func (e *EndPointer) Speaking() bool { return e.speaking }

// Feed takes the next piece of sound and returns the last edge in it.
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
	e.recent = e.recent<<1 | e.voiced(pcm)
	if !e.speaking {
		if ones(e.recent, beginWindows) < beginVoiced {
			return NoEdge
		}
		e.speaking, e.quiet = true, 0
		return SpeechBegan
	}
	e.quiet++
	if e.recent&1 == 1 && ones(e.recent, keepWindows) >= keepVoiced {
		e.quiet = 0
	}
	if e.quiet < e.silence {
		return NoEdge
	}
	e.speaking, e.recent = false, 0
	return SpeechEnded
}

func ones(bits uint32, of int) (n int) {
	for bits &= 1<<of - 1; bits != 0; bits &= bits - 1 {
		n++
	}
	return n
}

// voiced is 1 for a window that holds a voice.
func (e *EndPointer) voiced(pcm []int16) uint32 {
	level := rms(pcm)
	loud := level > lowestVoice && level > aboveFloor*e.floor
	// The detector keeps statistics of its own and must hear every window.
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&pcm[0])), 2*len(pcm))
	voice, err := e.vad.Process(MicRate, bytes)
	voice = voice && err == nil && loud
	e.follow(level, voice)
	if voice {
		return 1
	}
	return 0
}

// follow lets the floor sink to a quieter room at once and rise to a louder
// one over some seconds, so that a fan becomes part of the floor but a
// sentence does not.
func (e *EndPointer) follow(level float64, voice bool) {
	rise := 1.02 // a window: about tenfold in 2.4 s
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
