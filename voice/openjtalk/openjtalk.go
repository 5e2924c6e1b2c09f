// Package openjtalk synthesizes Japanese speech with the program open_jtalk, which it runs for
// each sentence.
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

// Options are the options of an engine. The defaults suit Debian's packages.
type Options struct {
	Program    string   // default: "open_jtalk"
	Dictionary string   // directory of the dictionary naist-jdic
	Folders    []string // directories that contain voices, NAME.htsvoice, or subdirectories with voices; default: Debian's directories
	Voice      string   `yaml:"voice" doc:"The name of an HTS voice, without .htsvoice. If empty, that of Debian's package, or else any."`
	Speed      int      `yaml:"speed" unit:"%" doc:"In percent of the voice's own, 50 to 200. If 0, 100."`
	// Language is the BCP 47 tag of the language for calls that name none; "" means Japanese.
	Language string
}

// debianVoice is the voice in voicePackage.
const debianVoice = "nitech_jp_atr503_m001"

// Names of Debian's packages.
const (
	programPackage    = "open-jtalk"
	dictionaryPackage = "open-jtalk-mecab-naist-jdic"
	voicePackage      = "hts-voice-nitech-jp-atr503-m001"
)

// Driver declares the synthesizer openjtalk.
func Driver() voice.SynthesizerDriver {
	return driver.Of(voice.SynthesizerDriver{Kind: "openjtalk", Runs: []string{"open_jtalk, for Japanese"},
		Summary: "A Japanese voice that runs on this machine.",
		Sample:  `{kind: openjtalk, voice: "", speed: 0}    # Japanese only, before espeak; docs/engines.md says what to install`},
		Options.withSetup, func(o Options) (voice.Synthesizer, error) { return New(o) })
}

// withSetup returns o with the voice and language of the setup.
func (o Options) withSetup(s voice.Setup) (Options, error) {
	o.Voice, o.Language = cmp.Or(s.Voice, o.Voice), s.Language
	return o, nil
}

// Speaks reports whether the engine may support a language.
func (Options) Speaks(language string) bool { return language == "ja" }

// Where returns a sentence that describes the engine while it works.
func (*Engine) Where() string { return "open_jtalk is installed" }

// StatusText returns the same sentence as Where.
func (e *Engine) StatusText() string { return e.Where() }

// Engine implements voice.Synthesizer.
type Engine struct{ o Options }

// voiceName matches valid names of voices. It matches no paths and no glob patterns.
var voiceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// New returns an engine, or an error if the options are invalid.
func New(o Options) (*Engine, error) {
	o.Program = cmp.Or(o.Program, "open_jtalk")
	o.Dictionary = cmp.Or(o.Dictionary, "/var/lib/mecab/dic/open-jtalk/naist-jdic")
	o.Speed = cmp.Or(o.Speed, 100)
	if len(o.Folders) == 0 {
		o.Folders = []string{"/usr/local/share/hts-voice", "/usr/share/hts-voice"}
	}
	return &Engine{o}, o.Check()
}

// Check returns an error if the options are invalid.
func (o Options) Check() error {
	if o.Voice != "" && !voiceName().MatchString(o.Voice) {
		return fmt.Errorf("%.80q cannot be a voice of open_jtalk: use the name of its file, without .htsvoice", o.Voice)
	}
	if o.Speed != 0 && (o.Speed < 50 || o.Speed > 200) {
		return fmt.Errorf("open_jtalk speaks at 50 to 200 percent of a voice's speed, not %d", o.Speed)
	}
	return nil
}

// Name returns "openjtalk".
func (*Engine) Name() string { return "openjtalk" }

// Check returns an error if the program, its dictionary or the voice is not installed. The error
// names the Debian packages to install, or the configured voice that is missing.
func (e *Engine) Check(context.Context) error {
	var missing []string
	if _, err := exec.LookPath(e.o.Program); err != nil {
		missing = append(missing, programPackage)
	}
	if _, err := os.Stat(filepath.Join(e.o.Dictionary, "sys.dic")); err != nil {
		missing = append(missing, dictionaryPackage)
	}
	_, err := e.voiceFile(e.o.Voice)
	if err != nil && e.o.Voice == "" {
		missing, err = append(missing, voicePackage), nil
	}
	if len(missing) == 0 {
		return err
	}
	cure := "sudo apt install " + strings.Join(missing, " ")
	if missing[len(missing)-1] == voicePackage {
		cure += "; " + voicePackage + " is in Debian's contrib"
	}
	return fmt.Errorf("%w: Japanese needs more packages: %s", voice.ErrUnavailable, cure)
}

// voiceFile returns the file of a voice. If name is "", it returns the file of debianVoice, or
// else of any voice.
func (e *Engine) voiceFile(name string) (string, error) {
	patterns := []string{name}
	if name == "" {
		patterns = []string{debianVoice, "*"}
	}
	for _, pattern := range patterns {
		for _, folder := range e.o.Folders {
			for _, dir := range []string{folder, filepath.Join(folder, "*")} {
				// Glob fails only for an invalid pattern.
				if found, _ := filepath.Glob(filepath.Join(dir, pattern+".htsvoice")); len(found) > 0 {
					return found[0], nil
				}
			}
		}
	}
	return "", fmt.Errorf("%w: open_jtalk has no voice %s.htsvoice in %s", voice.ErrUnavailable, name, strings.Join(e.o.Folders, " and "))
}

// Voices implements voice.Lister.
func (e *Engine) Voices(context.Context) (list []voice.Named, err error) {
	for _, folder := range e.o.Folders {
		for _, dir := range []string{folder, filepath.Join(folder, "*")} {
			found, _ := filepath.Glob(filepath.Join(dir, "*.htsvoice")) // Glob fails only for an invalid pattern
			for _, file := range found {
				if name := strings.TrimSuffix(filepath.Base(file), ".htsvoice"); voiceName().MatchString(name) {
					list = append(list, voice.Named{Name: name})
				}
			}
		}
	}
	return list, nil
}

// Synthesize implements voice.Synthesizer. The error wraps voice.ErrLanguage for other
// languages than Japanese, and voice.ErrText if open_jtalk cannot read any part of the text.
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
	file, err := e.voiceFile(name)
	if err != nil {
		return err
	}
	command := []string{e.o.Program, "-x", e.o.Dictionary, "-m", file, "-r", strconv.FormatFloat(float64(e.o.Speed)/100, 'f', 2, 64),
		"-ow", "/dev/stdout"}
	unreadable, sounded := false, false // whether a piece with letters could not be read; whether any piece made sound
	for piece := range pieces(text) {
		err := program.Call{Name: "open_jtalk", Command: command, Text: piece}.Speak(ctx, func(pcm []int16) error {
			sounded = true
			return out(pcm)
		})
		fault, ok := errors.AsType[*program.Fault](err)
		switch {
		case ok && strings.Contains(fault.Stderr, noPhoneme):
			unreadable = unreadable || strings.ContainsFunc(piece, unicode.IsLetter)
		case err != nil:
			return err
		}
	}
	if unreadable && !sounded {
		return fmt.Errorf("%w: open_jtalk cannot read any part of it", voice.ErrText)
	}
	return nil
}

// noPhoneme is part of the program's message for a text that it cannot read.
const noPhoneme = "No phoneme"
