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

// Edge is a change that the EndPointer found in a piece of sound.
type Edge int

// The edges of an utterance.
const (
	NoEdge      Edge = iota
	SpeechBegan      // enough windows sounded like a voice
	SpeechEnded      // enough silence followed the speech
)

// DefaultSilence is the silence after speech that ends an utterance. People pause for 300
// to 400 ms inside a sentence.
const DefaultSilence = 600 * time.Millisecond

// Thresholds for windows of 20 ms, chosen with speech of three voices, breath, servo noise, and
// the silence of discontinuous transmission; endpoint_test.go checks them.
const (
	window          = MicRate * 20 / 1000 // samples
	onsetWindows    = 15                  // speech begins if, within 300 ms,
	minOnsetVoiced  = 8                   // 160 ms sound like a voice,
	minOnsetPitched = 4                   // and 80 ms also have the pitch of a voice
	keptWindows     = 5                   // speech goes on if, within 100 ms,
	minKeptVoiced   = 2                   // 40 ms sound like a voice
	floorMargin     = 2.5                 // a voice's RMS is at least this multiple of the noise floor, 8 dB
	minVoiceLevel   = 100.0               // RMS; -50 dBFS, quieter than a person in the room
)

// EndPointer finds where speech begins and ends in a stream of 16 kHz PCM. The WebRTC voice
// detector finds the windows of 20 ms that sound like a voice. Windows that are not louder
// than the room's noise are excluded. A voice's pitch distinguishes vowels from breath and
// motors. Feed ends speech only after a longer silence than the pauses in a sentence; EndIfSettled may
// end it earlier, after a complete sentence.
//
// An EndPointer measures time in samples: if the stream may stop, the caller needs a clock
// to end the speech. It is not safe for concurrent use.
type EndPointer struct {
	vad            *webrtcvad.VAD
	silenceWindows int     // windows of silence that end speech
	partial        []int16 // sound of the next, still incomplete window

	recent       uint32           // one bit per window, the newest is the lowest: 1 if it sounds like a voice
	pitched      uint32           // one bit per window like recent: 1 if it also has a voice's pitch
	tail         [pitchSpan]int16 // the latest sound
	floor        float64          // RMS of the room's noise
	speaking     bool
	quietWindows int    // number of windows since a voice was last heard
	settledText  string // the text of the current speech that EndIfSettled last passed to its argument settled; may be empty
	settled      bool   // the result of that call
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
	e := &EndPointer{vad: vad, partial: make([]int16, 0, window)}
	e.SetSilence(silence)
	e.Reset()
	return e, nil
}

// SetSilence changes the silence that ends an utterance (DefaultSilence if zero).
func (e *EndPointer) SetSilence(silence time.Duration) {
	e.silenceWindows = int(cmp.Or(silence, DefaultSilence) / (20 * time.Millisecond))
}

// Reset drops the current speech, but keeps the noise floor.
func (e *EndPointer) Reset() {
	e.recent, e.pitched, e.speaking, e.quietWindows, e.partial = 0, 0, false, 0, e.partial[:0]
}

// Speaking reports whether speech has begun and not ended.
func (e *EndPointer) Speaking() bool { return e.speaking }

// Quiet returns the time since a voice was last heard in the current speech. After the end of the
// speech it returns the silence that ended the speech.
func (e *EndPointer) Quiet() time.Duration {
	return time.Duration(e.quietWindows) * 20 * time.Millisecond
}

// After a complete sentence, less silence ends the speech: settledSilence, provided that the
// recognizer's text has not changed for settledFor of sound, and that the recognizer has
// processed all sound but the latest maxSettledLag.
const (
	settledSilence = 240 * time.Millisecond
	settledFor     = 100 * time.Millisecond
	maxSettledLag  = 2 * FrameDuration
)

// EndIfSettled ends the current speech before the usual silence if the recognizer's partial text
// of u, the current utterance, is settled, and reports whether it has ended the speech. The
// function settled reports whether the meaning of a text is final, even if the person says more;
// EndIfSettled calls settled once for each new text.
func (e *EndPointer) EndIfSettled(u *Utterance, settled func(text string) bool) bool {
	if !e.speaking || e.Quiet() < settledSilence {
		return false
	}
	heard := u.Partial()
	if heard.Text == "" || heard.Unchanged < settledFor || heard.Behind > maxSettledLag {
		return false
	}
	if heard.Text != e.settledText {
		e.settledText, e.settled = heard.Text, settled(heard.Text)
	}
	if !e.settled {
		return false
	}
	e.endSpeech()
	return true
}

// endSpeech marks the current speech as ended.
func (e *EndPointer) endSpeech() { e.speaking, e.recent, e.pitched = false, 0, 0 }

// Voiced reports whether a voice was heard in the last 100 ms.
func (e *EndPointer) Voiced() bool { return countOnes(e.recent, keptWindows) > 0 }

// Feed processes the next piece of sound, of any length, and returns the last edge in it.
func (e *EndPointer) Feed(pcm []int16) Edge {
	edge := NoEdge
	for len(pcm) > 0 {
		n := min(window-len(e.partial), len(pcm))
		e.partial = append(e.partial, pcm[:n]...)
		pcm = pcm[n:]
		if len(e.partial) < window {
			break
		}
		if found := e.processWindow(e.partial); found != NoEdge {
			edge = found
		}
		e.partial = e.partial[:0]
	}
	return edge
}

// processWindow processes 20 ms of sound and returns the edge that it brings.
func (e *EndPointer) processWindow(pcm []int16) Edge {
	copy(e.tail[:], e.tail[len(pcm):])
	copy(e.tail[len(e.tail)-len(pcm):], pcm)
	voice := e.isVoice(pcm)
	e.recent = e.recent<<1 | bitOf(voice)
	e.pitched = e.pitched<<1 | bitOf(voice && hasPitch(&e.tail))
	if !e.speaking {
		if countOnes(e.recent, onsetWindows) < minOnsetVoiced || countOnes(e.pitched, onsetWindows) < minOnsetPitched {
			return NoEdge
		}
		e.speaking, e.quietWindows, e.settledText = true, 0, ""
		return SpeechBegan
	}
	e.quietWindows++
	if voice && countOnes(e.recent, keptWindows) >= minKeptVoiced && countOnes(e.pitched, onsetWindows) > 0 {
		e.quietWindows = 0
	}
	if e.quietWindows < e.silenceWindows {
		return NoEdge
	}
	e.endSpeech()
	return SpeechEnded
}

func bitOf(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// countOnes counts the ones among the n latest windows of recent.
func countOnes(recent uint32, n int) int { return bits.OnesCount32(recent & (1<<n - 1)) }

// isVoice reports whether a window sounds like a voice and is loud enough, and updates the
// noise floor.
func (e *EndPointer) isVoice(pcm []int16) bool {
	level := rms(pcm)
	// The detector collects statistics of the sound, so it must see every window. It reads
	// samples in native byte order, so the memory of pcm can be passed as it is.
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&pcm[0])), 2*len(pcm))
	voice, err := e.vad.Process(MicRate, bytes)
	voice = voice && err == nil && level > minVoiceLevel && level > floorMargin*e.floor
	e.trackFloor(level, voice)
	return voice
}

// trackFloor lowers the noise floor to the level of a quieter window at once. It raises the
// floor over some seconds, so a fan becomes part of it, but a sentence does not.
func (e *EndPointer) trackFloor(level float64, voice bool) {
	rise := 1.02 // per window: about tenfold in 2.4 s
	if voice {
		rise = 1.002 // about tenfold in 23 s
	}
	e.floor = max(1, min(level, max(e.floor, 1)*rise))
}

// rms returns the root mean square of samples.
func rms(pcm []int16) float64 {
	sum := 0.0
	for _, s := range pcm {
		sum += float64(s) * float64(s)
	}
	return math.Sqrt(sum / float64(len(pcm)))
}
