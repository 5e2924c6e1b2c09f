// Package voice processes sound: Opus in both directions, speech detection, echo
// cancellation, resampling, and the pacer that times packets for a robot. Engines for
// speech recognition and synthesis are packages below it and implement its two
// interfaces.
//
// All sound here is 16-bit mono PCM: 16 kHz from a robot's microphone, 24 kHz to
// its speaker, both in frames of 60 ms.
package voice

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Rates and lengths of the Xiaozhi firmware's audio.
const (
	MicRate       = 16000                 // samples a second from a robot's microphone
	SpeakerRate   = 24000                 // samples a second to a robot's speaker
	FrameDuration = 60 * time.Millisecond // one Opus packet, both ways

	MicFrame     = MicRate * 60 / 1000     // samples in a microphone frame
	SpeakerFrame = SpeakerRate * 60 / 1000 // samples in a speaker frame
)

// LongestUtterance is the longest speech in one utterance. Speech beyond it
// belongs to the next utterance.
const LongestUtterance = 15 * time.Second

// Options of one call of an engine. Empty fields leave the choice to the engine.
type Options struct {
	Language string // BCP 47, "en" or "en-GB"
	Voice    string // the engine's name of a voice; with several engines, the first's
	// Detect says that the speaker may speak another language than Language.
	// Recognizers that can detect languages do so; others ignore it.
	Detect bool
	// Answer says that the utterance answers a question by yes or no. A recognizer
	// may then listen for such answers only; others ignore it.
	Answer bool
	// Stranger says that nobody has adopted the robot. A busy engine serves other
	// robots first; engines that serve all alike ignore it.
	Stranger bool
}

// BaseLanguage returns the language of a BCP 47 tag in lower case, such as "en" of "en-GB".
func BaseLanguage(tag string) string {
	base, _, _ := strings.Cut(strings.ToLower(tag), "-")
	return base
}

// Transcript is a recognizer's result for an utterance.
type Transcript struct {
	Text string
	// Language is the language that the recognizer detected, if it says so: a BCP 47
	// tag, or an English name such as "german", as from Whisper servers.
	Language string
	// Refused is true if there was speech but the recognizer rejects every text for
	// it. Text is then empty.
	Refused bool
	// NoSpeech is how likely the recognizer thinks it is that nobody has spoken, 0 to 1.
	NoSpeech float64
}

// Recognizer turns speech into text. Implementations are safe for concurrent use.
type Recognizer interface {
	// Name returns the engine's kind as the configuration spells it.
	Name() string
	// Recognize reads u from its beginning while it is still spoken, and returns once u
	// is finished. It returns ctx's error when cancelled.
	Recognize(ctx context.Context, u *Utterance, o Options) (Transcript, error)
}

// Synthesizer turns text into speech.
type Synthesizer interface {
	// Name returns the engine's kind as the configuration spells it.
	Name() string
	// Synthesize calls out with consecutive pieces of 24 kHz PCM as they are
	// made. The slice is only valid during the call. It returns out's error,
	// or ctx's when cancelled.
	Synthesize(ctx context.Context, text string, o Options, out func(pcm []int16) error) error
}

// ErrUnavailable is wrapped by engines that cannot work now, because a program is missing
// or a server does not answer. The next engine in the list is tried.
var ErrUnavailable = errors.New("engine unavailable")

// ErrLanguage is wrapped by engines that do not know the language of a call. It wraps
// ErrUnavailable.
var ErrLanguage = fmt.Errorf("%w: it does not know the language", ErrUnavailable)
