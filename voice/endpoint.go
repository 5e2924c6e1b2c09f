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
	windowDuration  = 20 * time.Millisecond
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
// motors. How much silence ends the speech depends on the words, if a recognizer reports them while
// the person speaks, and on the sound of the speech, if an EndJudge judges it; see Expect.
//
// An EndPointer measures time in samples: if the stream may stop, the caller needs a clock
// to end the speech. It is not safe for concurrent use.
type EndPointer struct {
	vad            *webrtcvad.VAD
	silence        time.Duration // silence that ends speech, unless Expect knows better
	usualWindows   int           // windows of silence that end the current speech, unless Expect knows better
	silenceWindows int           // windows of silence that end the current speech
	partial        []int16       // sound of the next, still incomplete window

	recent       uint32           // one bit per window, the newest is the lowest: 1 if it sounds like a voice
	pitched      uint32           // one bit per window like recent: 1 if it also has a voice's pitch
	tail         [pitchSpan]int16 // the latest sound
	floor        float64          // RMS of the room's noise
	speaking     bool
	quietWindows int    // number of windows since a voice was last heard
	judgedText   string // text of the current speech that Expect last passed to its argument judge; may be empty
	ending       Ending // what judge returned for it
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

// SetSilence changes the silence that ends an utterance (DefaultSilence if zero), from the next
// utterance on.
func (e *EndPointer) SetSilence(silence time.Duration) { e.silence = cmp.Or(silence, DefaultSilence) }

// Reset drops the current speech, but keeps the noise floor.
func (e *EndPointer) Reset() {
	e.recent, e.pitched, e.speaking, e.quietWindows, e.partial = 0, 0, false, 0, e.partial[:0]
}

// Speaking reports whether speech has begun and not ended.
func (e *EndPointer) Speaking() bool { return e.speaking }

// Quiet returns the time since a voice was last heard in the current speech. After the end of the
// speech it returns the silence that ended the speech.
func (e *EndPointer) Quiet() time.Duration {
	return time.Duration(e.quietWindows) * windowDuration
}

// Ending tells from the text of an utterance whether the person is likely to say more.
type Ending int

// The endings, by the silence that they need.
const (
	UnknownEnding Ending = iota // nothing is known of the text: the silence of SetSilence
	Answered                    // it answers a question that was asked: 40% of that silence
	Whole                       // it is a sentence whose meaning no further words change: 85%
	Unfinished                  // it is the beginning of a sentence, or its last word ends no sentence: 300%
)

// percent returns the silence that the ending needs, in percent of the usual silence. With the
// DefaultSilence, an answer waits for 240 ms, a whole sentence for 510 ms, which is longer than
// people pause before "no, to the right", and an unfinished one for 1.8 s. ended is the probability, by the
// sound, that the person has finished, or NaN.
func (e Ending) percent(ended float64) float64 {
	percent := [...]float64{100, 40, 85, 300}[e]
	if math.IsNaN(ended) {
		return percent
	}
	switch factor := math.Pow(2, 1-2*ended); e {
	case UnknownEnding:
		percent *= factor
	case Whole:
		percent *= max(1, factor)
	}
	return percent
}

// Expect sets the silence that ends the current speech, from its words and from its sound. It must be called before Feed.
//
// It judges the recognizer's partial text of u, the current utterance, if the recognizer has
// processed the speech and unchangedFor of the silence after it, or all sound but the latest maxBehind,
// and if the text has not changed for unchangedFor of sound. It calls judge once for each new text.
//
// Where the words tell nothing, the usual silence is halved if an EndJudge is certain that the person has finished, and
// doubled if it is certain that the person goes on. That of a whole sentence is only made longer: the words do not tell
// that more will follow.
func (e *EndPointer) Expect(u *Utterance, judge func(text string) Ending) {
	if !e.speaking || e.Quiet() < unchangedFor {
		return
	}
	heard := u.Partial()
	if heard.Text != "" && heard.Text != e.judgedText && heard.Unchanged >= unchangedFor && heard.Behind <= max(maxBehind, e.Quiet()-unchangedFor) {
		e.judgedText, e.ending = heard.Text, judge(heard.Text)
	}
	e.silenceWindows = int(float64(e.usualWindows) * e.ending.percent(u.EndProbability()) / 100)
}

// Limits of Expect.
const (
	unchangedFor = 100 * time.Millisecond
	maxBehind    = 2 * FrameDuration
)

// Paused reports whether the person pauses in the current speech, which may be its end.
func (e *EndPointer) Paused() bool { return e.speaking && e.Quiet() >= shortestPause }

// shortestPause is longer than the silence within and between words.
const shortestPause = 240 * time.Millisecond

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
		e.speaking, e.quietWindows, e.judgedText, e.ending = true, 0, "", UnknownEnding
		e.usualWindows = int(e.silence / windowDuration)
		e.silenceWindows = e.usualWindows
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
