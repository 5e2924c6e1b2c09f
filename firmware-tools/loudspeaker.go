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

// loudspeaker plays the sound of a simulated conversation with an external program. If the program is
// too slow, the loudspeaker drops sound, so that it does not delay the conversation.
type loudspeaker struct {
	sound      chan []int16             // PCM at voice.SpeakerRate; nil if no program was started
	resamplers map[int]*voice.Resampler // key: input rate in Hz
	player     sync.WaitGroup           // the goroutine that feeds the program
}

// playerOf returns the command line of an installed program that plays raw sound, or nil if this
// machine has no such program or no sound device. getenv and exists are os.Getenv and the function
// exists, except in tests.
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

// exists reports whether a file matches a glob pattern.
func exists(pattern string) bool {
	found, err := filepath.Glob(pattern)
	return err == nil && len(found) > 0
}

// maxQueuedPieces is the number of pieces of sound that may wait for the program. A piece is
// one packet of the robot's sound, or a whole sentence of the person.
const maxQueuedPieces = 100

// newLoudspeaker starts the program with the command line args. If args is empty or the program
// cannot be started, the loudspeaker plays nothing.
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
	l.sound, l.resamplers = make(chan []int16, maxQueuedPieces), map[int]*voice.Resampler{}
	l.player.Go(func() {
		for pcm := range l.sound {
			_ = binary.Write(input, binary.LittleEndian, pcm) // fails if the program has ended; the sound is then dropped
		}
		_ = input.Close()
		_ = c.Wait()
	})
	return l
}

// play queues sound, or drops it if the queue is full. rate is in Hz.
func (l *loudspeaker) play(rate int, pcm []int16) {
	if l.sound == nil {
		return
	}
	if l.resamplers[rate] == nil {
		l.resamplers[rate] = voice.NewResampler(rate, voice.SpeakerRate)
	}
	select {
	case l.sound <- slices.Clone(l.resamplers[rate].Resample(pcm)):
	default:
	}
}

// close waits until all queued sound has been played.
func (l *loudspeaker) close() {
	if l.sound != nil {
		close(l.sound)
		l.player.Wait()
	}
}
