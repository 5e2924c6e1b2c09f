// Package voice processes sound: it encodes and decodes Opus, detects speech, cancels echo,
// resamples, and computes when to send packets to a robot. Packages below it implement its
// interfaces Recognizer and Synthesizer with engines for speech recognition and synthesis.
//
// Sound is 16-bit mono PCM: 16 kHz from a robot's microphone and 24 kHz to its speaker. Packets hold
// frames of 60 ms.
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
	MicRate       = 16000                 // Hz, from a robot's microphone
	SpeakerRate   = 24000                 // Hz, to a robot's speaker
	FrameDuration = 60 * time.Millisecond // one Opus packet, in both directions

	MicFrame     = MicRate * 60 / 1000     // samples in a microphone frame
	SpeakerFrame = SpeakerRate * 60 / 1000 // samples in a speaker frame
)

// MaxUtterance is the maximum duration of an utterance. Longer speech is divided into several
// utterances.
const MaxUtterance = 15 * time.Second

// Options are the options of one call of an engine. An empty Language or Voice leaves the choice
// to the engine.
type Options struct {
	Language string // a BCP 47 tag, such as "en" or "en-GB"
	Voice    string // the engine's name of a voice; if several engines are tried, only the first uses it
	// Emotion is the firmware's name of the face that the robot shows with the text, such as "happy"; "" if unknown. A
	// synthesizer may speak accordingly, or ignore the field.
	Emotion string
	// DetectLanguage is true if the person may speak another language than Language. A
	// recognizer that cannot detect languages ignores the field.
	DetectLanguage bool
	// YesNo is true if the utterance answers a question, most often with yes or no. A recognizer
	// may then recognize only yes, no and the like, or ignore the field.
	YesNo bool
	// Mute is true if the text is only shown. A [Synthesizers] then makes silence for the time of reading.
	Mute bool
	// Deaf is true if nothing may be recognized. A [Recognizers] then refuses every utterance.
	Deaf bool
	// Stranger is true if the robot has not been adopted, that is, accepted by the owner. A
	// busy engine may serve other robots first.
	Stranger bool
	// Patient is true if an utterance may wait for a busy recognizer for several seconds after its end.
	// Otherwise the recognizer soon returns ErrBusy, so that another can be asked. See RecognizePatiently.
	Patient bool
}

// BaseLanguage returns the language of a BCP 47 tag in lower case, such as "en" of "en-GB".
func BaseLanguage(tag string) string {
	base, _, _ := strings.Cut(strings.ToLower(tag), "-")
	return base
}

// Transcript is a recognizer's result for an utterance.
type Transcript struct {
	Text string // empty if Refused
	// Language is the language that the recognizer detected, as a BCP 47 tag, or as an
	// English name such as "german", which Whisper servers use. It is empty if the
	// recognizer does not report one.
	Language string
	// Refused is true if the recognizer found no text that it trusts, if its text has nothing
	// but markup, or if its text is a sentence that recognizers invent for silence.
	Refused bool
	// Silence is true if nobody has spoken as far as can be told: the text has nothing but markup, or is a sentence
	// that recognizers invent for silence, or the sound is as short and quiet as silence. Refused is then true, too.
	Silence bool
	// NoSpeech is the recognizer's probability that nobody has spoken, 0 to 1; 0 if unknown.
	NoSpeech float64
}

// Recognizer turns speech into text. Implementations are safe for concurrent use.
type Recognizer interface {
	// Name returns the engine's kind as the configuration spells it.
	Name() string
	// Recognize reads u from its beginning, possibly while u is still being spoken, and
	// returns a transcript once u is finished. It returns ctx's error if ctx ends first.
	Recognize(ctx context.Context, u *Utterance, o Options) (Transcript, error)
}

// Synthesizer turns text into speech.
type Synthesizer interface {
	// Name returns the engine's kind as the configuration spells it.
	Name() string
	// Synthesize calls out with consecutive pieces of 24 kHz PCM as soon as each is made.
	// The slice is only valid during the call. Synthesize returns the first error of out,
	// and ctx's error if ctx ends.
	Synthesize(ctx context.Context, text string, o Options, out func(pcm []int16) error) error
}

// ErrUnavailable is wrapped by the errors of engines that cannot serve a call at present, for example
// because a program is missing or a server does not respond, so that another engine is tried.
var ErrUnavailable = errors.New("engine unavailable")

// ErrBusy is wrapped by the errors of recognizers that work, but cannot recognize an utterance soon, because
// too many others are being recognized. It wraps ErrUnavailable.
var ErrBusy = fmt.Errorf("%w: it is busy with other utterances", ErrUnavailable)

// ErrLanguage is wrapped by the errors of engines that do not support the language of a
// call. It wraps ErrUnavailable.
var ErrLanguage = fmt.Errorf("%w: it does not know the language", ErrUnavailable)

// ErrText is wrapped by the errors of engines that know the language of a call, but cannot read
// the text, such as kanji with an English voice. It wraps ErrLanguage.
var ErrText error = textError{}

// textError is the type of ErrText.
type textError struct{}

// Error returns the message.
func (textError) Error() string { return "the text cannot be read" }

// Unwrap returns ErrLanguage, so that the next engine is tried.
func (textError) Unwrap() error { return ErrLanguage }
