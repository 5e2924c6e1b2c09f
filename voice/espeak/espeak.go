// Package espeak speaks with libespeak-ng, in a process of its own, so that no text can
// end the appliance. It needs no key, no network and no sound card.
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
	// Voice is one of `espeak-ng --voices`. If empty, each call has espeak-ng's voice
	// for its language.
	Voice string `yaml:"voice" doc:"One of espeak-ng --voices, for its own language; other languages have espeak-ng's voice for them."`
	Speed int    `yaml:"speed" doc:"In words a minute, 80 to 450. If 0, 160."`
	// Language of calls that name none, and of a Voice whose name does not begin with
	// its own, BCP 47. A call in another language has espeak-ng's voice for that
	// language. If empty, Voice speaks all languages.
	Language string
}

// ServeCommand is how a program that calls Serve with its standard input and output is told to.
const ServeCommand = "espeak"

// Driver declares the synthesizer espeak. This program, also where an upgrade has put another in
// its place, is the process that speaks.
func Driver() voice.SynthesizerDriver {
	return driver.Of(voice.SynthesizerDriver{Kind: "espeak", Runs: []string{"nothing"}, Sample: `{kind: espeak, voice: en-us, speed: 0}`},
		Options.with, func(o Options) (voice.Synthesizer, error) { return New(o) })
}

func (o Options) with(s voice.Setup) (Options, error) {
	o.Voice, o.Language, o.Command = cmp.Or(s.Voice, o.Voice), s.Language, []string{"/proc/self/exe", ServeCommand}
	return o, nil
}

// Speaks reports whether the engine may know a language. Of Japanese it reads only kana.
func (Options) Speaks(language string) bool { return language != "ja" }

// Where says what the engine needs.
func (*Engine) Where() string { return "espeak-ng is installed" }

// Note says what is shown of an engine that works.
func (e *Engine) Note() string { return e.Where() }

// Engine implements voice.Synthesizer.
type Engine struct {
	o       Options
	speaker *speaker
}

// voiceName keeps a voice's name from being taken for an option or a path.
var voiceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+_-]{0,39}$`) })

// New returns the engine. It starts nothing. Close ends what was started since.
func New(o Options) (*Engine, error) {
	o.Speed = cmp.Or(o.Speed, 160)
	return &Engine{o, newSpeaker(o.Command)}, o.Check()
}

// Check reports what New refuses.
func (o Options) Check() error {
	if o.Voice != "" && !voiceName().MatchString(o.Voice) {
		return fmt.Errorf("%q is no espeak-ng voice; espeak-ng --voices lists them", o.Voice)
	}
	if o.Speed != 0 && (o.Speed < 80 || o.Speed > 450) {
		return fmt.Errorf("espeak-ng speaks 80 to 450 words a minute, not %d", o.Speed)
	}
	return nil
}

// base is a language without its region.
func base(tag string) string {
	first, _, _ := strings.Cut(strings.ToLower(tag), "-")
	return first
}

// Name is "espeak".
func (*Engine) Name() string { return "espeak" }

// Check reports whether espeak-ng is installed: the program, with which come the library
// and its data.
func (*Engine) Check(context.Context) error {
	if _, err := exec.LookPath("espeak-ng"); err != nil {
		return fmt.Errorf("%w: espeak-ng is not installed; apt install espeak-ng", voice.ErrUnavailable)
	}
	return nil
}

// Warm starts the process that speaks, and has its voice loaded.
func (e *Engine) Warm(ctx context.Context) error {
	if err := e.Check(ctx); err != nil {
		return err
	}
	return e.speaker.speak(ctx, request{Voice: e.voice(voice.Options{}), Speed: e.o.Speed}, nil)
}

// Close ends that process. A text that is spoken comes to its end first.
func (e *Engine) Close() { e.speaker.close() }

// ofLanguage is how espeak-ng names most of its voices: "en-us+f3", "mb-de1".
var ofLanguage = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:mb-)?([a-z]{2,3})(?:[0-9]|[-+]|$)`) })

// own is the language of Voice: the one in its name, if there is one.
func (e *Engine) own() string {
	m := ofLanguage().FindStringSubmatch(strings.ToLower(e.o.Voice))
	switch {
	case m == nil:
		return base(e.o.Language)
	case m[1] == "cmn":
		return "zh"
	}
	return m[1]
}

// voice is the name of the voice for a call.
func (e *Engine) voice(o voice.Options) string {
	language := cmp.Or(o.Language, e.o.Language)
	switch first := base(language); {
	case voiceName().MatchString(o.Voice):
		return o.Voice
	case e.o.Voice != "" && (e.o.Language == "" || first == e.own() || !voiceName().MatchString(language)):
		return e.o.Voice
	case first == "en" || !voiceName().MatchString(language):
		return "en-us"
	case first == "zh":
		// The voice "zh" of espeak-ng 1.51, which Debian 12 has, reads 你好 as "ni three
		// hao three", in English.
		return "cmn-latn-pinyin"
	default:
		return first // espeak-ng has a voice of that name for each language that it knows
	}
}

// Synthesize implements voice.Synthesizer. It wraps voice.ErrLanguage for a text that
// espeak-ng cannot read (of each kanji its Japanese voice says "Chinese letter"), and
// for a language that it has no voice for.
func (e *Engine) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	if err := e.Check(ctx); err != nil {
		return err
	}
	name := e.voice(o)
	if !reads(name, text) {
		return fmt.Errorf("%w: espeak-ng's voice %s cannot read Japanese or Chinese characters; openjtalk reads Japanese", voice.ErrLanguage, name)
	}
	to := voice.NewConverter(voice.LongestSpeech(text), nil, out)
	for piece := range pieces(text) {
		err := e.speaker.speak(ctx, request{name, e.o.Speed, piece}, func(rate int, pcm []int16) error {
			to.Rate(rate) // which can be played
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

// mostPiece is how many characters are spoken at once. Sound is made faster than it is
// played, and is kept meanwhile: of so many, some megabytes at most.
const mostPiece = 400

// pieces cuts a text that is longer where a sentence ends, or a word.
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

// lastIndex is where the last of some characters is; 0 is nowhere.
func lastIndex(text []rune, of string) int {
	for i := len(text) - 1; i > 0; i-- {
		if strings.ContainsRune(of, text[i]) {
			return i
		}
	}
	return 0
}

// noVoice is the refusal of a voice that the library does not know.
const noVoice = "there is no such voice; espeak-ng --voices lists them"

// reads reports whether a voice can read a text. The Japanese one reads kana, and no
// kanji; those that are neither Japanese nor Chinese read neither, and say so of each
// character. They may have fewer of these than of other letters.
func reads(name, text string) bool {
	language := base(name)
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
