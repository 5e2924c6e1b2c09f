// Package program synthesizes speech with a program that is run for each text. The program
// reads the text from standard input and writes a WAV stream to standard output.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"perch/child"
	"perch/voice"
)

// Call is a run of a program.
type Call struct {
	Name    string   // name of the program for errors
	Command []string // program and its arguments
	Text    string   // text to speak
}

// Fault is the error of a program that has failed.
type Fault struct {
	Name   string // name of the program
	Stderr string // beginning of its standard error; may be ""
	Err    error  // how the program ended, or the error of its sound
}

// Error returns the name, the standard error and the text of Err.
func (f *Fault) Error() string {
	if f.Stderr == "" {
		return f.Name + ": " + f.Err.Error()
	}
	return f.Name + ": " + f.Stderr + ": " + f.Err.Error()
}

// Unwrap returns Err.
func (f *Fault) Unwrap() error { return f.Err }

const (
	soundTimeout = 20 * time.Second // timeout of the next piece of sound
	niceness     = 5                // nice value of the program; Perch itself has 0, and so takes precedence
)

// Speak runs the program and calls out with consecutive pieces of 24 kHz PCM, at most
// voice.MaxSpeech of the text. The pieces are valid only during the call. If ctx ends, out
// fails, or no sound comes for soundTimeout, Speak kills the program; it returns when the
// program has ended. If the program fails or is silent, the error is a Fault. If out fails, or the sound
// cannot be read, Speak returns that error, in a Fault if the program has written to its
// standard error. The error wraps voice.ErrUnavailable if the program cannot be started.
func (c Call) Speak(ctx context.Context, out func([]int16) error) error {
	return c.speak(ctx, soundTimeout, out)
}

// Start starts a program that writes sound to its standard output. The program has a low priority. stderr must
// be read only after cmd.Wait.
func Start(cmd *exec.Cmd) (stdout io.Reader, stderr *Stderr, err error) {
	stderr = &Stderr{}
	cmd.Stderr, cmd.WaitDelay = stderr, time.Second
	if stdout, err = cmd.StdoutPipe(); err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, cmd.Process.Pid, niceness) // an error does no harm
	return stdout, stderr, nil
}

// speak implements Speak with the given timeout.
func (c Call) speak(ctx context.Context, timeout time.Duration, out func([]int16) error) error {
	errSilent := fmt.Errorf("it made no sound for %s", timeout)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(timeout, func() { cancel(errSilent) })
	defer timer.Stop()
	cmd := exec.CommandContext(ctx, c.Command[0], c.Command[1:]...)
	cmd.Env = child.Environ(os.Environ())
	cmd.Stdin = strings.NewReader(c.Text)
	stdout, stderr, err := Start(cmd)
	if err != nil {
		return fmt.Errorf("%w: start %s: %w", voice.ErrUnavailable, c.Name, err)
	}
	soundErr := convertWAV(ctx, stdout, voice.NewConverter(voice.MaxSpeech(c.Text), nil, func(pcm []int16) error {
		// The time that out takes does not count.
		timer.Stop()
		defer timer.Reset(timeout)
		return out(pcm)
	}))
	if soundErr != nil {
		cancel(nil) // the rest of the sound is not read
	}
	exitErr := cmd.Wait()
	text := stderr.String()
	switch {
	case errors.Is(context.Cause(ctx), errSilent):
		return &Fault{c.Name, text, errSilent}
	case soundErr != nil && text == "":
		return soundErr
	case soundErr != nil:
		return &Fault{c.Name, text, soundErr}
	case exitErr != nil:
		return &Fault{c.Name, text, exitErr}
	}
	return nil
}

// convertWAV reads a WAV stream to its end and converts its sound.
func convertWAV(ctx context.Context, r io.Reader, to *voice.Converter) error {
	wav, err := voice.NewWAVReader(r)
	if err != nil {
		return fmt.Errorf("read its sound: %w", err)
	}
	if !to.SetRate(wav.Rate) {
		return fmt.Errorf("read its sound: %d Hz cannot be played", wav.Rate)
	}
	return to.ConvertAll(ctx, wav.Read)
}

// maxStderr is the maximum number of bytes that a Stderr stores.
const maxStderr = 1000

// Stderr stores the beginning of a program's standard error.
type Stderr struct{ text bytes.Buffer }

// Write implements io.Writer.
func (s *Stderr) Write(p []byte) (int, error) {
	s.text.Write(p[:min(len(p), max(0, maxStderr-s.text.Len()))])
	return len(p), nil
}

// String returns the stored text. It must be called only after the program has ended.
func (s *Stderr) String() string {
	return strings.TrimSpace(strings.ToValidUTF8(s.text.String(), ""))
}
