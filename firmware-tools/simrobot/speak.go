package simrobot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"perch/voice"
)

// Speak synthesizes a text with the program flite and returns 16 kHz PCM. voice is a voice of
// flite; empty means slt. Tests use flite because none of the appliance's speech recognizers was tuned
// to its voices.
func Speak(ctx context.Context, text, voice string) ([]int16, error) {
	dir, err := os.MkdirTemp("", "simrobot")
	if err != nil {
		return nil, fmt.Errorf("say %q: %w", text, err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "speech.wav")
	out, err := exec.CommandContext(ctx, "flite", "-voice", cmp.Or(voice, "slt"), "-t", text, "-o", file).CombinedOutput()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("flite, which synthesizes the person's voice, is not installed: apt install flite")
	case err != nil:
		return nil, fmt.Errorf("say %q with flite: %w: %s", text, err, bytes.TrimSpace(out))
	}
	return ReadWAV(file)
}

// ReadWAV reads a 16-bit PCM WAV file with any sample rate, and returns it as 16 kHz mono.
func ReadWAV(file string) ([]int16, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read sound: %w", err)
	}
	defer f.Close()
	w, err := voice.NewWAVReader(f)
	if err != nil {
		return nil, fmt.Errorf("read sound from %s: %w", file, err)
	}
	pcm, err := w.ReadAll(voice.MicRate)
	if err != nil {
		return nil, fmt.Errorf("read sound from %s: %w", file, err)
	}
	return pcm, nil
}
