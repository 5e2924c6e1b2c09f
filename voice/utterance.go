package voice

import (
	"context"
	"encoding/binary"
	"math"
	"sync"
	"time"
)

// Utterance holds the sound of one utterance, also while it is still being spoken. One
// goroutine writes it. Any number of goroutines read it, each from the beginning and at its
// own pace: if one engine fails, another can recognize the same sound.
type Utterance struct {
	mu       sync.Mutex
	pcm      []int16
	finished bool
	ended    time.Time     // when the utterance was finished
	dropped  bool          // the sound is not needed: pcm stays empty
	paused   bool          // the person pauses; see SetPaused
	grown    chan struct{} // closed by the next write, SetPaused or Finish; nil if no reader waits
	end      chan struct{} // closed by Finish

	endProbability float64 // probability that the person has finished, in the present pause; NaN if unknown

	partial      string // the recognizer's text so far
	partialSince int    // number of samples after which the recognizer first had this text
	partialUntil int    // number of samples that the recognizer has processed
}

// PartialTranscript is a recognizer's text for an utterance that is still being spoken.
type PartialTranscript struct {
	Text      string        // empty if nothing is recognized yet
	Unchanged time.Duration // duration of the processed sound since Text last changed
	Behind    time.Duration // duration of the sound that the recognizer has not processed yet
}

// SetPartial records the recognizer's text so far, after it has processed this number of
// samples. Recognizers without partial results need not call it.
func (u *Utterance) SetPartial(text string, samples int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if text != u.partial {
		u.partial, u.partialSince = text, samples
	}
	u.partialUntil = samples
}

// Partial returns the recognizer's latest partial transcript.
func (u *Utterance) Partial() PartialTranscript {
	u.mu.Lock()
	defer u.mu.Unlock()
	return PartialTranscript{u.partial, durationOf(u.partialUntil - u.partialSince), durationOf(len(u.pcm) - u.partialUntil)}
}

// durationOf returns the duration of samples at MicRate.
func durationOf(samples int) time.Duration { return time.Duration(samples) * time.Second / MicRate }

// NewUtterance returns an empty utterance.
func NewUtterance() *Utterance {
	return &Utterance{end: make(chan struct{}), endProbability: math.NaN()}
}

// Write appends 16 kHz PCM and does not wait for readers. It returns false if it dropped any
// of the sound: because the utterance has reached MaxUtterance, is finished, or was dropped.
func (u *Utterance) Write(pcm []int16) bool {
	const maxSamples = int(MaxUtterance/time.Second) * MicRate
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.finished || u.dropped {
		return false
	}
	room := maxSamples - len(u.pcm)
	fits := len(pcm) <= room
	if !fits {
		pcm = pcm[:room]
	}
	u.pcm = append(u.pcm, pcm...)
	u.wakeReaders()
	return fits
}

// Finish marks the end of the utterance. It may be called more than once.
func (u *Utterance) Finish() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.finished {
		u.finished, u.ended = true, time.Now()
		close(u.end)
		u.wakeReaders()
	}
}

// Finished returns a channel that Finish closes.
func (u *Utterance) Finished() <-chan struct{} { return u.end }

// FinishedAt returns when Finish was called first, or the zero time before that.
func (u *Utterance) FinishedAt() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ended
}

// Drop discards the sound and makes Write discard all following sound, because nobody will
// recognize it. Wait still waits for Finish.
func (u *Utterance) Drop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dropped, u.pcm = true, nil
}

// SetPaused records whether the person pauses, which may be the end of the utterance. It has no effect on a
// finished utterance.
func (u *Utterance) SetPaused(paused bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if paused != u.paused && !u.finished {
		u.paused, u.endProbability = paused, math.NaN()
		u.wakeReaders()
	}
}

// SetEndProbability records the probability that the person has finished, 0 to 1, as an EndJudge has judged the present
// pause. It has no effect if the person does not pause.
func (u *Utterance) SetEndProbability(probability float64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.paused {
		u.endProbability = probability
	}
}

// EndProbability returns the probability that the person has finished, or NaN if it is unknown, as it is whenever the person
// does not pause.
func (u *Utterance) EndProbability() float64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.endProbability
}

// wakeReaders wakes the readers that wait for more sound. The caller holds u.mu.
func (u *Utterance) wakeReaders() {
	if u.grown != nil {
		close(u.grown)
		u.grown = nil
	}
}

// Duration returns the duration of the sound so far.
func (u *Utterance) Duration() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return durationOf(len(u.pcm))
}

// Read copies PCM into buf, from the sample at offset, and returns the number of samples
// copied. It waits for at least one sample. It returns 0 if the utterance is finished and has
// no sample at offset.
func (u *Utterance) Read(ctx context.Context, buf []int16, offset int) (int, error) {
	n := 0
	err := u.await(ctx, func() bool {
		if offset < len(u.pcm) {
			n = copy(buf, u.pcm[offset:])
		}
		return n > 0 || u.finished
	})
	if err != nil {
		return 0, err
	}
	return n, ctx.Err()
}

// await waits until done returns true, or returns ctx's error. It calls done with u.mu held, after each change.
func (u *Utterance) await(ctx context.Context, done func() bool) error {
	for {
		u.mu.Lock()
		if done() {
			u.mu.Unlock()
			return nil
		}
		if u.grown == nil {
			u.grown = make(chan struct{})
		}
		grown := u.grown
		u.mu.Unlock()
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Send passes the sound from the beginning to out, as it is spoken, until the utterance is
// finished. Each call of out gets 16-bit little-endian mono PCM at 16 kHz, at most two frames
// of the microphone; out must not retain the bytes. Send returns the first error of out, or
// ctx's error.
func (u *Utterance) Send(ctx context.Context, out func(pcm []byte) error) error {
	var pcm [2 * MicFrame]int16
	sound := make([]byte, 0, 2*len(pcm))
	for at := 0; ; {
		n, err := u.Read(ctx, pcm[:], at)
		if n == 0 || err != nil {
			return err
		}
		at += n
		sound = sound[:0]
		for _, s := range pcm[:n] {
			sound = binary.LittleEndian.AppendUint16(sound, uint16(s))
		}
		if err := out(sound); err != nil {
			return err
		}
	}
}

// Wait waits until the utterance is finished. It returns ctx's error if ctx ends first.
func (u *Utterance) Wait(ctx context.Context) error {
	select {
	case <-u.end:
	case <-ctx.Done():
	}
	return ctx.Err()
}
