// Package espeak speaks with espeak-ng, run as a program for each sentence:
// text on its standard input, a WAV stream on its standard output. It needs no
// key, no network and no sound card.
package espeak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"perch/voice"
	"perch/voice/program"
)

// Options of the engine.
type Options struct {
	Program string // "espeak-ng" where empty
	// Voice is one of `espeak-ng --voices`. If empty, each call has espeak-ng's voice
	// for its language.
	Voice string
	Speed int // words a minute; 0 is 160
	// Language of calls that name none, and of a Voice whose name does not begin with
	// its own, BCP 47. A call in another language has espeak-ng's voice for that
	// language. If empty, Voice speaks all languages.
	Language string
}

// Engine implements voice.Synthesizer.
type Engine struct{ o Options }

// voiceName keeps a voice's name from being taken for an option or a path.
var voiceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+_-]{0,39}$`) })

// New returns the engine. It starts nothing.
func New(o Options) (*Engine, error) {
	o.Program, o.Speed = cmp.Or(o.Program, "espeak-ng"), cmp.Or(o.Speed, 160)
	return &Engine{o}, o.Check()
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

// Check reports whether the program is there.
func (e *Engine) Check() error {
	if _, err := exec.LookPath(e.o.Program); err != nil {
		return fmt.Errorf("%w: %s is not installed; apt install espeak-ng", voice.ErrUnavailable, e.o.Program)
	}
	return nil
}

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
	if err := e.Check(); err != nil {
		return err
	}
	name := e.voice(o)
	if !reads(name, text) {
		return fmt.Errorf("%w: espeak-ng's voice %s cannot read Japanese or Chinese characters; openjtalk reads Japanese", voice.ErrLanguage, name)
	}
	err := program.Call{Name: "espeak-ng", Command: []string{e.o.Program, "--stdin", "--stdout", "-v", name, "-s", strconv.Itoa(e.o.Speed)},
		Text: text}.Speak(ctx, out)
	fault, is := errors.AsType[*program.Fault](err)
	if is && strings.Contains(fault.Complaint, noVoice) && name != e.o.Voice && name != o.Voice {
		return fmt.Errorf("%w: espeak-ng has no voice for %q", voice.ErrLanguage, name)
	}
	return err
}

// noVoice is what the program writes where it does not know the voice.
const noVoice = "voice does not exist"

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
