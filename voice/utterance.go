package voice

import (
	"context"
	"encoding/binary"
	"sync"
	"time"
)

// Utterance is the sound of one utterance while it is being spoken. One
// goroutine writes; any number read, each from the beginning and at its own
// pace, so that a second engine can have what a first one failed on.
type Utterance struct {
	mu       sync.Mutex
	pcm      []int16
	finished bool
	dropped  bool
	grown    chan struct{} // made by a reader that waits, closed by the next write

	supposed string // what its recognizer takes it for, while it is spoken
	from, to int    // samples: it has been taken for that since from, up to to
}

// Supposition is what a recognizer takes an utterance for that is still being
// spoken.
type Supposition struct {
	Text   string        // empty: for nothing yet
	Stood  time.Duration // of sound that has not changed it
	Behind time.Duration // of sound that the recognizer has not heard yet
}

// Suppose notes what a recognizer takes the sound for so far, of which it has heard
// so many samples. Recognizers that do not know before the end need not call it.
func (u *Utterance) Suppose(text string, heard int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if text != u.supposed {
		u.supposed, u.from = text, heard
	}
	u.to = heard
}

// Supposed returns what was supposed last.
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

// Write appends 16 kHz PCM, up to LongestUtterance; what is beyond is not
// kept, and Write reports false. It never blocks for a reader.
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

// Drop discards the sound and keeps no more of it, because it will not be
// recognized. Wait still reports its end.
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

// Duration is how much sound there is so far.
func (u *Utterance) Duration() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return lasts(len(u.pcm))
}

// Read copies PCM that starts at sample offset into buf and returns how many
// samples it copied. It waits for more where there is none yet, and returns 0
// once the utterance is finished and read to its end.
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

// Send gives out the sound while it grows, from its beginning to its end, as
// recognizers elsewhere take it: 16-bit little-endian mono PCM at 16 kHz, two
// frames of the microphone's at most at a time. out does not keep the bytes.
// Its error, or ctx's, ends it.
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

// Wait returns when the utterance is finished, or ctx's error.
func (u *Utterance) Wait(ctx context.Context) error {
	var none [1]int16
	for {
		u.mu.Lock()
		n := len(u.pcm)
		u.mu.Unlock()
		// Nothing is there at n: Read returns when there is, or at the end.
		if read, err := u.Read(ctx, none[:], n); read == 0 || err != nil {
			return err
		}
	}
}
