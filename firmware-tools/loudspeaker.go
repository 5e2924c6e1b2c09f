package main

import (
	"context"
	"encoding/binary"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"perch/voice"
)

// loudspeaker plays a talk with a program. It drops sound rather than delaying the talk.
type loudspeaker struct {
	sound  chan []int16 // nil without a program
	rates  map[int]*voice.Resampler
	played sync.WaitGroup
}

// playerOf returns a program that plays raw sound, if there is a sound device.
func playerOf(getenv func(string) string, exists func(pattern string) bool) []string {
	rate := strconv.Itoa(voice.SpeakerRate)
	for _, p := range []struct {
		found bool
		args  []string
	}{
		{exists("/dev/snd/pcmC*p"), []string{"aplay", "-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", rate}},
		{getenv("PULSE_SERVER") != "" || exists(getenv("XDG_RUNTIME_DIR")+"/pulse/native"),
			[]string{"pacat", "--raw", "--format=s16le", "--channels=1", "--rate=" + rate}},
	} {
		if _, err := exec.LookPath(p.args[0]); p.found && err == nil {
			return p.args
		}
	}
	return nil
}

func exists(pattern string) bool {
	found, err := filepath.Glob(pattern)
	return err == nil && len(found) > 0
}

// queuedSound is how many pieces may wait for the program; a piece is 60 ms, or a
// whole sentence of the person.
const queuedSound = 100

// newLoudspeaker starts the program. A failure is ignored.
func newLoudspeaker(ctx context.Context, args []string) *loudspeaker {
	l := &loudspeaker{}
	if len(args) == 0 {
		return l
	}
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.WaitDelay = time.Second
	input, err := c.StdinPipe()
	if err != nil || c.Start() != nil {
		return l
	}
	l.sound, l.rates = make(chan []int16, queuedSound), map[int]*voice.Resampler{}
	l.played.Go(func() {
		for pcm := range l.sound {
			_ = binary.Write(input, binary.LittleEndian, pcm) // the program may have ended: the rest is dropped
		}
		_ = input.Close()
		_ = c.Wait()
	})
	return l
}

func (l *loudspeaker) play(rate int, pcm []int16) {
	if l.sound == nil {
		return
	}
	if l.rates[rate] == nil {
		l.rates[rate] = voice.NewResampler(rate, voice.SpeakerRate)
	}
	select {
	case l.sound <- slices.Clone(l.rates[rate].Resample(pcm)):
	default:
	}
}

// close waits until the queue was played.
func (l *loudspeaker) close() {
	if l.sound != nil {
		close(l.sound)
		l.played.Wait()
	}
}
