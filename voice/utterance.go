package voice

import (
	"context"
	"encoding/binary"
	"sync"
	"time"
)

// Utterance is the sound of one utterance while it is spoken. One goroutine writes; any
// number read, each from the beginning and at its own pace, so that a second engine can
// recognize what a first one failed on.
type Utterance struct {
	mu       sync.Mutex
	pcm      []int16
	finished bool
	dropped  bool
	grown    chan struct{} // made by a waiting reader, closed by the next write

	supposed string // the recognizer's text so far
	from, to int    // samples: the text has not changed since from, up to to
}

// Supposition is a recognizer's text for an utterance that is still being spoken.
type Supposition struct {
	Text   string        // empty: nothing yet
	Stood  time.Duration // of sound that did not change it
	Behind time.Duration // of sound that the recognizer has not heard yet
}

// Suppose records the recognizer's text so far, from the first heard samples.
// Recognizers without partial results need not call it.
func (u *Utterance) Suppose(text string, heard int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if text != u.supposed {
		u.supposed, u.from = text, heard
	}
	u.to = heard
}

// Supposed returns the latest supposition.
func (u *Utterance) Supposed() Supposition {
	u.mu.Lock()
	defer u.mu.Unlock()
	return Supposition{u.supposed, lasts(u.to - u.from), lasts(len(u.pcm) - u.to)}
}

func lasts(samples int) time.Duration { return time.Duration(samples) * time.Second / MicRate }

// NewUtterance returns an empty utterance.
func NewUtterance() *Utterance {
	return &Utterance{}
}

// Write appends 16 kHz PCM, up to LongestUtterance; beyond that it drops the sound and
// reports false. It does not wait for readers.
func (u *Utterance) Write(pcm []int16) bool {
	const most = int(LongestUtterance/time.Second) * MicRate
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.finished || u.dropped {
		return false
	}
	room := most - len(u.pcm)
	fits := len(pcm) <= room
	if !fits {
		pcm = pcm[:room]
	}
	u.pcm = append(u.pcm, pcm...)
	u.wake()
	return fits
}

// Finish marks the end of the utterance. It may be called more than once.
func (u *Utterance) Finish() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.finished {
		u.finished = true
		u.wake()
	}
}

// Drop discards the sound and stores no more, because it will not be recognized. Wait
// still reports its end.
func (u *Utterance) Drop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dropped, u.pcm = true, nil
}

func (u *Utterance) wake() {
	if u.grown != nil {
		close(u.grown)
		u.grown = nil
	}
}

// Duration returns how much sound there is so far.
func (u *Utterance) Duration() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return lasts(len(u.pcm))
}

// Read copies PCM from sample offset into buf and returns the number of samples copied.
// It waits until there is at least one, and returns 0 once the utterance is finished and
// read to its end.
func (u *Utterance) Read(ctx context.Context, buf []int16, offset int) (int, error) {
	for {
		u.mu.Lock()
		n := 0
		if offset < len(u.pcm) {
			n = copy(buf, u.pcm[offset:])
		}
		if n > 0 || u.finished {
			u.mu.Unlock()
			return n, ctx.Err()
		}
		if u.grown == nil {
			u.grown = make(chan struct{})
		}
		grown := u.grown
		u.mu.Unlock()
		select {
		case <-grown:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Send passes the sound to out while it grows, from its beginning to its end: 16-bit
// little-endian mono PCM at 16 kHz, at most two frames of the microphone at a time. out
// must not retain the bytes. Send ends with out's error or ctx's.
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

// Wait returns when the utterance is finished, or with ctx's error.
func (u *Utterance) Wait(ctx context.Context) error {
	var none [1]int16
	for {
		u.mu.Lock()
		n := len(u.pcm)
		u.mu.Unlock()
		// There is no sample at n yet: Read returns when there is, or at the end.
		if read, err := u.Read(ctx, none[:], n); read == 0 || err != nil {
			return err
		}
	}
}
