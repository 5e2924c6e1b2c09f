// Package program synthesizes speech with a program that is run for each text: text on
// standard input, a WAV stream on standard output. Nothing is written to disk.
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

// Call is one run of a program.
type Call struct {
	Name    string   // the program's name, for errors
	Command []string // the program and its arguments
	Text    string   // text to speak
}

// Fault is the error of a program that failed.
type Fault struct {
	Name      string // of the program
	Complaint string // its standard error, from a Complaint; may be empty
	Err       error  // how it ended
}

func (f *Fault) Error() string {
	if f.Complaint == "" {
		return f.Name + ": " + f.Err.Error()
	}
	return f.Name + ": " + f.Complaint + ": " + f.Err.Error()
}

func (f *Fault) Unwrap() error { return f.Err }

const (
	longest  = 20 * time.Second // until the next piece of sound
	niceness = 5                // of the program; the appliance has 0
)

// Speak runs the program and calls out with consecutive pieces of 24 kHz PCM, which are
// valid during the call, up to voice.LongestSpeech. The program has ended when Speak
// returns: it is killed if ctx is cancelled or out fails. The error is a Fault, or out's;
// it wraps voice.ErrUnavailable if the program cannot be started.
func (c Call) Speak(ctx context.Context, out func([]int16) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := time.AfterFunc(longest, cancel)
	defer limit.Stop()
	cmd := exec.CommandContext(ctx, c.Command[0], c.Command[1:]...)
	cmd.Env = child.Environ(os.Environ())
	cmd.Stdin = strings.NewReader(c.Text)
	cmd.WaitDelay = time.Second
	var complaint Complaint
	cmd.Stderr = &complaint
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", c.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: start %s: %w", voice.ErrUnavailable, c.Name, err)
	}
	// Playing has priority over synthesis. Failing to set the priority is no error.
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, cmd.Process.Pid, niceness)
	streamed := stream(stdout, voice.NewConverter(voice.LongestSpeech(c.Text), nil, func(pcm []int16) error {
		// The caller's time does not count.
		limit.Stop()
		defer limit.Reset(longest)
		return out(pcm)
	}))
	if streamed != nil {
		cancel() // its output is no longer read; it need not finish
	}
	ended := cmd.Wait()
	said := complaint.String()
	switch {
	case streamed != nil && said == "":
		return streamed
	case streamed != nil:
		return &Fault{c.Name, said, streamed}
	case ended != nil:
		return &Fault{c.Name, said, ended}
	}
	return nil
}

// stream converts the sound of a WAV stream.
func stream(r io.Reader, to *voice.Converter) error {
	wav, err := voice.NewWAVReader(r)
	if err != nil {
		return fmt.Errorf("read its sound: %w", err)
	}
	to.Rate(wav.Rate) // checked by the reader
	var pcm [2048]int16
	for {
		n, err := wav.Read(pcm[:])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read its sound: %w", err)
		}
		if err := to.Convert(pcm[:n]); err != nil {
			return err
		}
	}
}

// mostComplaint bounds a Complaint, in bytes.
const mostComplaint = 1000

// Complaint collects the beginning of a program's standard error.
type Complaint struct{ kept bytes.Buffer }

func (c *Complaint) Write(p []byte) (int, error) {
	c.kept.Write(p[:min(len(p), max(0, mostComplaint-c.kept.Len()))])
	return len(p), nil
}

// String returns the collected text, once the program has ended.
func (c *Complaint) String() string {
	return strings.TrimSpace(strings.ToValidUTF8(c.kept.String(), ""))
}
