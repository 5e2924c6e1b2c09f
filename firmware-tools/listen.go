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

// loudspeaker has a program of the machine play a talk while it goes on. It
// is never waited for: what it cannot take is not heard.
type loudspeaker struct {
	sound  chan []int16 // nil where nothing can be heard
	rates  map[int]*voice.Resampler
	played sync.WaitGroup
}

// playerOf is a program that plays raw sound from its standard input, where
// the machine has a device for it.
func playerOf(getenv func(string) string, exists func(pattern string) bool) []string {
	rate := strconv.Itoa(voice.SpeakerRate)
	for _, p := range []struct {
		there bool
		args  []string
	}{
		{exists("/dev/snd/pcmC*p"), []string{"aplay", "-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", rate}},
		{getenv("PULSE_SERVER") != "" || exists(getenv("XDG_RUNTIME_DIR")+"/pulse/native"), []string{"pacat", "--raw", "--format=s16le", "--channels=1", "--rate=" + rate}},
	} {
		if _, err := exec.LookPath(p.args[0]); p.there && err == nil {
			return p.args
		}
	}
	return nil
}

func exists(pattern string) bool {
	found, err := filepath.Glob(pattern)
	return err == nil && len(found) > 0
}

// queuedSound is how many pieces wait for the program, 60 ms each or a whole
// sentence of a person's.
const queuedSound = 100

// newLoudspeaker starts the program, and says nothing where that fails.
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
			_ = binary.Write(input, binary.LittleEndian, pcm) // it may have ended: then nobody hears the rest
		}
		_ = input.Close()
		_ = c.Wait()
	})
	return l
}

// play has sound played after what was before it.
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

// close waits until all was played.
func (l *loudspeaker) close() {
	if l.sound != nil {
		close(l.sound)
		l.played.Wait()
	}
}

// howHeard says whether a talk can be heard.
func howHeard(player []string) string {
	if len(player) > 0 {
		return "played by " + player[0]
	}
	return "not played: no sound device, or neither aplay nor pacat"
}
