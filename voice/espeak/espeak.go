// Package espeak synthesizes speech with libespeak-ng in a child process, so that no text
// can crash the appliance. It needs no key, no network and no sound card.
package espeak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"perch/driver"
	"perch/voice"
)

// Options of the engine.
type Options struct {
	// Command is the program, and its arguments, that calls Serve with its standard input
	// and output.
	Command []string
	// Voice is one of `espeak-ng --voices`. If empty, each call uses espeak-ng's voice
	// for its language.
	Voice string `yaml:"voice" doc:"One of espeak-ng --voices, for its own language; other languages have espeak-ng's voice for them."`
	Speed int    `yaml:"speed" doc:"In words a minute, 80 to 450. If 0, 160."`
	// Language, BCP 47, is used for calls that name none, and as the language of a Voice
	// whose name does not begin with one. A call in another language uses espeak-ng's
	// voice for that language. If empty, Voice speaks all languages.
	Language string
}

// ServeCommand is the argument that makes a program call Serve with its standard input and output.
const ServeCommand = "espeak"

// Driver declares the synthesizer espeak. The child process is this program, even after an
// upgrade has replaced its file.
func Driver() voice.SynthesizerDriver {
	return driver.Of(voice.SynthesizerDriver{Kind: "espeak", Runs: []string{"nothing"}, Sample: `{kind: espeak, voice: en-us, speed: 0}`},
		Options.with, func(o Options) (voice.Synthesizer, error) { return New(o) })
}

func (o Options) with(s voice.Setup) (Options, error) {
	o.Voice, o.Language, o.Command = cmp.Or(s.Voice, o.Voice), s.Language, []string{"/proc/self/exe", ServeCommand}
	return o, nil
}

// Speaks reports whether the engine may know a language. It reads only the kana of Japanese.
func (Options) Speaks(language string) bool { return language != "ja" }

// Where returns what the engine needs.
func (*Engine) Where() string { return "espeak-ng is installed" }

// StatusText returns the status text of a working engine.
func (e *Engine) StatusText() string { return e.Where() }

// Engine implements voice.Synthesizer.
type Engine struct {
	o       Options
	speaker *speaker
}

// voiceName matches names of voices that cannot be an option or a path.
var voiceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+_-]{0,39}$`) })

// New returns the engine. It starts no process. Close ends it.
func New(o Options) (*Engine, error) {
	o.Speed = cmp.Or(o.Speed, 160)
	return &Engine{o, newSpeaker(o.Command)}, o.Check()
}

// Check validates the options.
func (o Options) Check() error {
	if o.Voice != "" && !voiceName().MatchString(o.Voice) {
		return fmt.Errorf("%q is no espeak-ng voice; espeak-ng --voices lists them", o.Voice)
	}
	if o.Speed != 0 && (o.Speed < 80 || o.Speed > 450) {
		return fmt.Errorf("espeak-ng speaks 80 to 450 words a minute, not %d", o.Speed)
	}
	return nil
}

// Name returns "espeak".
func (*Engine) Name() string { return "espeak" }

// Check reports whether espeak-ng is installed: the program, whose package has the library
// and its data.
func (*Engine) Check(context.Context) error {
	if _, err := exec.LookPath("espeak-ng"); err != nil {
		return fmt.Errorf("%w: espeak-ng is not installed; apt install espeak-ng", voice.ErrUnavailable)
	}
	return nil
}

// Warm starts the process and loads its voice.
func (e *Engine) Warm(ctx context.Context) error {
	if err := e.Check(ctx); err != nil {
		return err
	}
	return e.speaker.speak(ctx, request{Voice: e.voice(voice.Options{}), Speed: e.o.Speed}, nil)
}

// Close ends the process, after the current text.
func (e *Engine) Close() { e.speaker.close() }

// ofLanguage matches the names that most voices have: "en-us+f3", "mb-de1".
var ofLanguage = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:mb-)?([a-z]{2,3})(?:[0-9]|[-+]|$)`) })

// voiceLanguage returns the language of Voice: the one in its name, if any.
func (e *Engine) voiceLanguage() string {
	m := ofLanguage().FindStringSubmatch(strings.ToLower(e.o.Voice))
	switch {
	case m == nil:
		return voice.BaseLanguage(e.o.Language)
	case m[1] == "cmn":
		return "zh"
	}
	return m[1]
}

// voice returns the name of the voice for a call.
func (e *Engine) voice(o voice.Options) string {
	language := cmp.Or(o.Language, e.o.Language)
	switch first := voice.BaseLanguage(language); {
	case voiceName().MatchString(o.Voice):
		return o.Voice
	case e.o.Voice != "" && (e.o.Language == "" || first == e.voiceLanguage() || !voiceName().MatchString(language)):
		return e.o.Voice
	case first == "en" || !voiceName().MatchString(language):
		return "en-us"
	case first == "zh":
		// The voice "zh" of espeak-ng 1.51, in Debian 12, reads 你好 as "ni three hao
		// three", in English.
		return "cmn-latn-pinyin"
	default:
		return first // espeak-ng has a voice of that name for each of its languages
	}
}

// Synthesize implements voice.Synthesizer. It wraps voice.ErrLanguage for a text that
// espeak-ng cannot read (its Japanese voice says "Chinese letter" for each kanji), and for a
// language without a voice.
func (e *Engine) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	if err := e.Check(ctx); err != nil {
		return err
	}
	name := e.voice(o)
	if !canRead(name, text) {
		return fmt.Errorf("%w: espeak-ng's voice %s cannot read Japanese or Chinese characters; openjtalk reads Japanese", voice.ErrLanguage, name)
	}
	to := voice.NewConverter(voice.LongestSpeech(text), nil, out)
	for piece := range pieces(text) {
		err := e.speaker.speak(ctx, request{name, e.o.Speed, piece}, func(rate int, pcm []int16) error {
			to.Rate(rate) // a playable rate
			return to.Convert(pcm)
		})
		switch refused, _ := errors.AsType[refusal](err); {
		case refused == noVoice && name != e.o.Voice && name != o.Voice:
			return fmt.Errorf("%w: espeak-ng has no voice for %q", voice.ErrLanguage, name)
		case err != nil:
			return err
		}
	}
	return nil
}

// mostPiece bounds a piece of text, in characters. Sound is made faster than it is played
// and is buffered: some megabytes at most for one piece.
const mostPiece = 400

// pieces cuts a longer text at the end of a sentence, or of a word.
func pieces(text string) iter.Seq[string] {
	rest := []rune(text)
	return func(yield func(string) bool) {
		for len(rest) > 0 {
			n := min(len(rest), mostPiece)
			if n < len(rest) {
				n = 1 + cmp.Or(lastIndex(rest[:n], ".!?。！？\n"), lastIndex(rest[:n], " ,;、，"), n-1)
			}
			if !yield(string(rest[:n])) {
				return
			}
			rest = rest[n:]
		}
	}
}

// lastIndex returns the index of the last of some characters, or 0.
func lastIndex(text []rune, of string) int {
	for i := len(text) - 1; i > 0; i-- {
		if strings.ContainsRune(of, text[i]) {
			return i
		}
	}
	return 0
}

// noVoice is the error for a voice that the library does not know.
const noVoice = "there is no such voice; espeak-ng --voices lists them"

// canRead reports whether a voice can read a text. The Japanese voice reads kana but no
// kanji; voices of other languages than Japanese and Chinese read neither, and announce
// each character. A text may have a minority of such characters.
func canRead(name, text string) bool {
	language := voice.BaseLanguage(name)
	if language == "cmn" || language == "zh" || language == "yue" || language == "hak" {
		return true
	}
	unread, letters := 0, 0
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Han, r), language != "ja" && unicode.In(r, unicode.Hiragana, unicode.Katakana):
			unread++
		case unicode.IsLetter(r):
			letters++
		}
	}
	return unread == 0 || language != "ja" && unread < letters
}
