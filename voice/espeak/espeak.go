// Package espeak speaks with espeak-ng, run as a program for each sentence:
// text on its standard input, a WAV stream on its standard output. It needs no
// key, no network and no sound card.
package espeak

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"perch/voice"
)

// Options of the engine.
type Options struct {
	Program string // "espeak-ng" where empty
	Voice   string // "en-us" where empty; `espeak-ng --voices` lists them
	Speed   int    // words a minute; 0 is 160
	// Language of Voice, BCP 47. A call in another language uses espeak-ng's voice
	// for that language. If empty, Voice speaks all languages.
	Language string
}

// Engine implements voice.Synthesizer.
type Engine struct{ o Options }

// voiceName keeps a voice's name from being taken for an option or a path.
var voiceName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+_-]{0,39}$`)

// New returns the engine. It starts nothing.
func New(o Options) (*Engine, error) {
	o.Program, o.Voice, o.Speed = cmp.Or(o.Program, "espeak-ng"), cmp.Or(o.Voice, "en-us"), cmp.Or(o.Speed, 160)
	return &Engine{o}, o.Check()
}

// Check reports what New refuses.
func (o Options) Check() error {
	if o.Voice != "" && !voiceName.MatchString(o.Voice) {
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

// longest bounds the time until the program's next piece of sound; espeak-ng
// makes a minute of speech in well under a second.
const longest = 20 * time.Second

// niceness of the program, beside the appliance's 0.
const niceness = 5

// Synthesize implements voice.Synthesizer.
func (e *Engine) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	if err := e.Check(); err != nil {
		return err
	}
	name := e.o.Voice
	switch language := strings.ToLower(o.Language); {
	case voiceName.MatchString(o.Voice):
		name = o.Voice
	case e.o.Language != "" && voiceName.MatchString(language) && base(language) != base(e.o.Language):
		name = base(language) // espeak-ng has a voice of that name for each language
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := time.AfterFunc(longest, cancel)
	defer limit.Stop()
	cmd := exec.CommandContext(ctx, e.o.Program, "--stdin", "--stdout", "-v", name, "-s", strconv.Itoa(e.o.Speed))
	cmd.Stdin = strings.NewReader(text)
	cmd.WaitDelay = time.Second
	var complaint bytes.Buffer
	cmd.Stderr = &limited{&complaint, 1000}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start espeak-ng: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: start espeak-ng: %w", voice.ErrUnavailable, err)
	}
	// Playing has priority over synthesis. If the priority cannot be set, the
	// sentence is synthesized all the same.
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, cmd.Process.Pid, niceness)
	streamed := stream(stdout, func(pcm []int16) error {
		// The time that the caller takes does not count.
		limit.Stop()
		defer limit.Reset(longest)
		return out(pcm)
	})
	if streamed != nil {
		cancel() // its output is no longer read; it need not finish
	}
	ended := cmd.Wait()
	switch {
	case streamed != nil && complaint.Len() > 0:
		return fmt.Errorf("espeak-ng: %s: %w", strings.TrimSpace(complaint.String()), streamed)
	case streamed != nil:
		return streamed
	case ended != nil:
		return fmt.Errorf("espeak-ng: %s: %w", strings.TrimSpace(complaint.String()), ended)
	}
	return nil
}

// stream passes on the sound of a WAV stream at the speaker's rate.
func stream(r io.Reader, out func([]int16) error) error {
	wav, err := voice.NewWAVReader(r)
	if err != nil {
		return fmt.Errorf("read espeak-ng's sound: %w", err)
	}
	resampler := voice.NewResampler(wav.Rate, voice.SpeakerRate)
	var pcm [2048]int16
	for {
		n, err := wav.Read(pcm[:])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read espeak-ng's sound: %w", err)
		}
		if err := out(resampler.Resample(pcm[:n])); err != nil {
			return err
		}
	}
}

// limited keeps the beginning of a program's error output.
type limited struct {
	to   *bytes.Buffer
	most int
}

func (l *limited) Write(p []byte) (int, error) {
	l.to.Write(p[:min(len(p), max(0, l.most-l.to.Len()))])
	return len(p), nil
}
