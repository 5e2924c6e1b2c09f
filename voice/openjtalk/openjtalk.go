// Package openjtalk synthesizes Japanese speech with open_jtalk, run for each sentence:
// text on standard input, a WAV file on standard output. It needs no key, no network, no
// sound card and no temporary file.
package openjtalk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"perch/driver"
	"perch/voice"
	"perch/voice/program"
)

// Options of the engine. The defaults are what Debian's packages install.
type Options struct {
	Program    string   // "open_jtalk"
	Dictionary string   // folder of naist-jdic
	Folders    []string // folders of voices: NAME.htsvoice, or in a subfolder
	Voice      string   `yaml:"voice" doc:"The name of an HTS voice, without .htsvoice. If empty, that of Debian's package, or else any."`
	Speed      int      `yaml:"speed" doc:"In percent of the voice's own, 50 to 200. If 0, 100."`
	// Language of calls that name none, BCP 47. Empty means Japanese.
	Language string
}

// usual is the voice in Debian.
const usual = "nitech_jp_atr503_m001"

// Debian's packages of each part.
const (
	programPackage    = "open-jtalk"
	dictionaryPackage = "open-jtalk-mecab-naist-jdic"
	voicePackage      = "hts-voice-nitech-jp-atr503-m001"
)

// Driver declares the synthesizer openjtalk.
func Driver() voice.SynthesizerDriver {
	return driver.Of(voice.SynthesizerDriver{Kind: "openjtalk", Runs: []string{"open_jtalk, for Japanese"},
		Sample: `{kind: openjtalk, voice: "", speed: 0}    # Japanese only, before espeak; docs/engines.md says what to install`},
		Options.with, func(o Options) (voice.Synthesizer, error) { return New(o) })
}

func (o Options) with(s voice.Setup) (Options, error) {
	o.Voice, o.Language = cmp.Or(s.Voice, o.Voice), s.Language
	return o, nil
}

// Speaks reports whether the engine may know a language.
func (Options) Speaks(language string) bool { return language == "ja" }

// Where returns what the engine needs.
func (*Engine) Where() string { return "open_jtalk is installed" }

// StatusText returns the status text of a working engine.
func (e *Engine) StatusText() string { return e.Where() }

// Engine implements voice.Synthesizer.
type Engine struct{ o Options }

// voiceName matches names of voices that cannot be a path or a glob pattern.
var voiceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// New returns the engine. It starts no process.
func New(o Options) (*Engine, error) {
	o.Program = cmp.Or(o.Program, "open_jtalk")
	o.Dictionary = cmp.Or(o.Dictionary, "/var/lib/mecab/dic/open-jtalk/naist-jdic")
	o.Speed = cmp.Or(o.Speed, 100)
	if len(o.Folders) == 0 {
		o.Folders = []string{"/usr/local/share/hts-voice", "/usr/share/hts-voice"}
	}
	return &Engine{o}, o.Check()
}

// Check validates the options.
func (o Options) Check() error {
	if o.Voice != "" && !voiceName().MatchString(o.Voice) {
		return fmt.Errorf("%.80q is no voice of open_jtalk: its name is that of its file, without .htsvoice", o.Voice)
	}
	if o.Speed != 0 && (o.Speed < 50 || o.Speed > 200) {
		return fmt.Errorf("open_jtalk speaks at 50 to 200 percent of a voice's speed, not %d", o.Speed)
	}
	return nil
}

// Name returns "openjtalk".
func (*Engine) Name() string { return "openjtalk" }

// Check reports whether the program, its dictionary and the voice are installed. Its error
// says what to install.
func (e *Engine) Check(context.Context) error {
	var missing []string
	if _, err := exec.LookPath(e.o.Program); err != nil {
		missing = append(missing, programPackage)
	}
	if _, err := os.Stat(filepath.Join(e.o.Dictionary, "sys.dic")); err != nil {
		missing = append(missing, dictionaryPackage)
	}
	_, err := e.voice(e.o.Voice)
	if err != nil && e.o.Voice == "" {
		missing, err = append(missing, voicePackage), nil
	}
	if len(missing) == 0 {
		return err
	}
	cure := "apt install " + strings.Join(missing, " ")
	if missing[len(missing)-1] == voicePackage {
		cure += ", the last of which is in Debian's contrib"
	}
	return fmt.Errorf("%w: Japanese needs more packages: %s", voice.ErrUnavailable, cure)
}

// voice returns the file of a voice. Without a name the usual one is preferred.
func (e *Engine) voice(name string) (string, error) {
	wanted := []string{name}
	if name == "" {
		wanted = []string{usual, "*"}
	}
	for _, one := range wanted {
		for _, folder := range e.o.Folders {
			for _, at := range []string{folder, filepath.Join(folder, "*")} {
				// The only error is a bad pattern, and this one is good.
				if found, _ := filepath.Glob(filepath.Join(at, one+".htsvoice")); len(found) > 0 {
					return found[0], nil
				}
			}
		}
	}
	return "", fmt.Errorf("%w: open_jtalk has no voice %s.htsvoice in %s", voice.ErrUnavailable, name, strings.Join(e.o.Folders, " and "))
}

// Synthesize implements voice.Synthesizer. Its error wraps voice.ErrLanguage for another
// language than Japanese, and for a text without anything that Japanese can read.
func (e *Engine) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	language := cmp.Or(o.Language, e.o.Language, "ja")
	if voice.BaseLanguage(language) != "ja" {
		return fmt.Errorf("%w: openjtalk only speaks Japanese, not %.40q", voice.ErrLanguage, language)
	}
	if err := e.Check(ctx); err != nil {
		return err
	}
	name := e.o.Voice
	if voiceName().MatchString(o.Voice) {
		name = o.Voice
	}
	file, err := e.voice(name)
	if err != nil {
		return err
	}
	command := []string{e.o.Program, "-x", e.o.Dictionary, "-m", file, "-r", strconv.FormatFloat(float64(e.o.Speed)/100, 'f', 2, 64),
		"-ow", "/dev/stdout"}
	unread := false
	for piece := range pieces(text) {
		err := program.Call{Name: "open_jtalk", Command: command, Text: piece}.Speak(ctx, func(pcm []int16) error {
			unread = false
			return out(pcm)
		})
		fault, is := errors.AsType[*program.Fault](err)
		switch {
		case is && strings.Contains(fault.Complaint, noPhoneme):
			unread = unread || strings.ContainsFunc(piece, unicode.IsLetter)
		case err != nil:
			return err
		}
	}
	if unread {
		return fmt.Errorf("%w: open_jtalk can read nothing of the text", voice.ErrLanguage)
	}
	return nil
}

// noPhoneme is the program's message if there is nothing to speak.
const noPhoneme = "No phoneme"
