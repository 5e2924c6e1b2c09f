// Package espeak synthesizes speech with libespeak-ng. The library runs in a child process,
// so that a crash of the library does not end Perch.
package espeak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"perch/child"
	"perch/driver"
	"perch/voice"
)

// Options are the options of an engine. Only Command is required.
type Options struct {
	// Command is a program and its arguments. The program must call Serve with its standard
	// input and output.
	Command []string
	// Voice is one of `espeak-ng --voices`. If it is "", each call uses espeak-ng's voice for
	// the language of the call.
	Voice string `yaml:"voice" doc:"One of espeak-ng --voices, for its own language; other languages have espeak-ng's voice for them."`
	Speed int    `yaml:"speed" doc:"In words a minute, 80 to 450. If 0, 160."`
	// Language is a BCP 47 tag: the language of calls that name none, and of Voice if the name
	// of Voice does not begin with a language. Calls in another language than Voice's use
	// espeak-ng's voice for that language. If Language is "", Voice is used for all languages.
	Language string
}

// ServeCommand is the argument that makes the perch program call Serve with its standard input
// and output.
const ServeCommand = "espeak"

// Driver declares the synthesizer espeak. Its child process runs the program of this
// process, even after an upgrade has replaced the file.
func Driver() voice.SynthesizerDriver {
	return driver.Of(voice.SynthesizerDriver{Kind: "espeak", Runs: []string{"nothing"},
		Summary: "A plain voice that runs on this machine and speaks many languages, but not Japanese.",
		Sample:  `{kind: espeak, voice: en-us, speed: 0}`},
		Options.withSetup, func(o Options) (voice.Synthesizer, error) { return New(o) })
}

// withSetup returns o with the voice and language of the setup, and the command of the child
// process.
func (o Options) withSetup(s voice.Setup) (Options, error) {
	o.Voice, o.Language, o.Command = cmp.Or(s.Voice, o.Voice), s.Language, []string{"/proc/self/exe", ServeCommand}
	return o, nil
}

// Speaks reports whether the engine may support a language. It does not support Japanese: it
// can read kana, but not kanji.
func (Options) Speaks(language string) bool { return language != "ja" }

// Where returns a sentence that describes the engine while it works.
func (*Engine) Where() string { return "espeak-ng is installed" }

// StatusText returns the same sentence as Where.
func (e *Engine) StatusText() string { return e.Where() }

// Engine implements voice.Synthesizer.
type Engine struct {
	o       Options
	speaker *speaker
}

// voiceName matches valid names of voices. It matches no command-line options and no paths.
var voiceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+_-]{0,39}$`) })

// New returns an engine, or an error if the options are invalid. The child process is started when
// it is first needed. The caller must call Close.
func New(o Options) (*Engine, error) {
	o.Speed = cmp.Or(o.Speed, 160)
	return &Engine{o, newSpeaker(o.Command)}, o.Check()
}

// Check returns an error if the options are invalid.
func (o Options) Check() error {
	if o.Voice != "" && !voiceName().MatchString(o.Voice) {
		return fmt.Errorf("%q is not an espeak-ng voice; espeak-ng --voices lists them", o.Voice)
	}
	if o.Speed != 0 && (o.Speed < 80 || o.Speed > 450) {
		return fmt.Errorf("espeak-ng speaks 80 to 450 words a minute, not %d", o.Speed)
	}
	return nil
}

// Name returns "espeak".
func (*Engine) Name() string { return "espeak" }

// Check returns an error if espeak-ng is not installed. It looks for the program, because the
// package of the program also installs the library and its data.
func (*Engine) Check(context.Context) error {
	if _, err := exec.LookPath("espeak-ng"); err != nil {
		return fmt.Errorf("%w: espeak-ng is not installed; sudo apt install espeak-ng", voice.ErrUnavailable)
	}
	return nil
}

// Warm starts the child process and loads the voice, so that the first text is spoken sooner.
func (e *Engine) Warm(ctx context.Context) error {
	if err := e.Check(ctx); err != nil {
		return err
	}
	return e.speaker.speak(ctx, request{Voice: e.voice(voice.Options{}), Speed: e.o.Speed}, nil)
}

// variant matches the lines of espeak-ng --voices=variant for the variants that have a number.
var variant = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`!v/([fm][0-9])\s`) })

// Voices implements voice.Lister. The voice of calls without a language and its variants come first, then the other
// voices for its language, then the voices for other languages.
func (e *Engine) Voices(ctx context.Context) ([]voice.Named, error) {
	own := e.voice(voice.Options{})
	variants, err := listVoices(ctx, "--voices=variant")
	if err != nil {
		return nil, fmt.Errorf("list the variants of espeak-ng: %w", err)
	}
	all, err := listVoices(ctx, "--voices")
	if err != nil {
		return nil, fmt.Errorf("list the voices of espeak-ng: %w", err)
	}
	list := []voice.Named{{Name: own}}
	if base, _, found := strings.Cut(own, "+"); !found {
		for _, m := range variant().FindAllSubmatch(variants, -1) {
			list = append(list, voice.Named{Name: base + "+" + string(m[1])})
		}
	}
	var others []voice.Named
	for line := range strings.Lines(string(all)) {
		// A line has the priority, the language, the age and gender, the name, and the file.
		column := strings.Fields(line)
		switch {
		case len(column) < 5 || column[0] == "Pty" || !voiceName().MatchString(column[1]):
		case voice.BaseLanguage(column[1]) == e.voiceLanguage():
			list = append(list, voice.Named{Name: column[1]})
		default:
			others = append(others, voice.Named{Name: column[1]})
		}
	}
	return append(list, others...), nil
}

// listVoices returns what the program espeak-ng prints for an option.
func listVoices(ctx context.Context, option string) ([]byte, error) {
	c := exec.CommandContext(ctx, "espeak-ng", option)
	c.Env = child.Environ(os.Environ())
	return c.Output()
}

// Close ends the child process, after the current text.
func (e *Engine) Close() { e.speaker.close() }

// languageVoice matches names of voices that begin with a language, such as "en-us+f3" and
// "mb-de1".
var languageVoice = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:mb-)?([a-z]{2,3})(?:[0-9]|[-+]|$)`) })

// voiceLanguage returns the language of Options.Voice: the language in the name of the voice, or
// else Options.Language.
func (e *Engine) voiceLanguage() string {
	m := languageVoice().FindStringSubmatch(strings.ToLower(e.o.Voice))
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
	switch base := voice.BaseLanguage(language); {
	case voiceName().MatchString(o.Voice):
		return o.Voice
	case e.o.Voice != "" && (e.o.Language == "" || base == e.voiceLanguage() || !voiceName().MatchString(language)):
		return e.o.Voice
	case base == "en" || !voiceName().MatchString(language):
		return "en-us"
	case base == "zh":
		// The voice "zh" of espeak-ng 1.51, in Debian 12, reads 你好 in English, as "ni three
		// hao three".
		return "cmn-latn-pinyin"
	default:
		return base // espeak-ng has a voice with this name for each of its languages
	}
}

// Synthesize implements voice.Synthesizer. The error wraps voice.ErrLanguage for a language
// without a voice, and voice.ErrText for a text that the voice cannot read: the Japanese voice
// says "Chinese letter" for each kanji.
func (e *Engine) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	if err := e.Check(ctx); err != nil {
		return err
	}
	name := e.voice(o)
	if !canRead(name, text) {
		return fmt.Errorf("%w: espeak-ng's voice %s cannot read Japanese or Chinese characters; openjtalk reads Japanese", voice.ErrText, name)
	}
	to := voice.NewConverter(voice.MaxSpeech(text), nil, out)
	for piece := range pieces(text) {
		err := e.speaker.speak(ctx, request{name, e.o.Speed, piece}, func(rate int, pcm []int16) error {
			to.SetRate(rate) // startProcess has checked that the rate is playable
			return to.Convert(pcm)
		})
		switch textErr, _ := errors.AsType[textError](err); {
		case textErr == noVoice && name != e.o.Voice && name != o.Voice:
			return fmt.Errorf("%w: espeak-ng has no voice for %q", voice.ErrLanguage, name)
		case err != nil:
			return err
		}
	}
	return nil
}

// maxPiece is the maximum length of a piece of text, in characters. The whole sound of a
// piece, which may be some megabytes, is buffered, because it is synthesized faster than it
// is played.
const maxPiece = 400

// pieces yields the pieces of a text, each of at most maxPiece characters. It splits a text after
// sentences, or if that is impossible after words, or else after maxPiece characters.
func pieces(text string) iter.Seq[string] {
	rest := []rune(text)
	return func(yield func(string) bool) {
		for len(rest) > 0 {
			n := min(len(rest), maxPiece)
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

// lastIndex returns the index of the last character in text that is in chars, or 0.
func lastIndex(text []rune, chars string) int {
	for i := len(text) - 1; i > 0; i-- {
		if strings.ContainsRune(chars, text[i]) {
			return i
		}
	}
	return 0
}

// noVoice is the message for a voice that the library does not have.
const noVoice = "there is no such voice; espeak-ng --voices lists them"

// canRead reports whether a voice can read a text without announcing characters, such as "Chinese
// letter". The Japanese voice announces kanji. Voices for other languages, except Chinese, announce
// kanji and kana.
func canRead(name, text string) bool {
	switch voice.BaseLanguage(name) {
	case "cmn", "zh", "yue", "hak":
		return true
	case "ja":
		return !strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) })
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) })
}
