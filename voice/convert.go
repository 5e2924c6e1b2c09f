package voice

import (
	"context"
	"errors"
	"io"
	"time"
	"unicode/utf8"
)

// ErrEndless is the error for an engine that makes more sound than MaxSpeech or a Converter
// allows.
var ErrEndless = errors.New("does not stop speaking")

// Playable reports whether sound at this rate, in Hz, can be resampled at a reasonable
// cost. Rates with a small common divisor with 24 kHz would need filters of many megabytes,
// and no voice has such a rate.
func Playable(rate int) bool { return rate >= 8000 && rate <= 48000 && rate%25 == 0 }

// Limits of MaxSpeech.
const (
	speechAllowance   = 10 * time.Second       // base duration of any text
	speechPerRune     = 500 * time.Millisecond // added to speechAllowance for each character
	maxSentenceSpeech = 2 * time.Minute        // maximum of the sum of both
	longTextPerRune   = 200 * time.Millisecond // the pace of the slowest voices
)

// MaxSpeech returns the maximum duration of the sound of a text. It is ten seconds and half
// a second per character, up to two minutes. A text of more than 600 characters may take
// longer: a fifth of a second per character.
func MaxSpeech(text string) time.Duration {
	letters := time.Duration(utf8.RuneCountInString(text))
	return max(min(speechAllowance+letters*speechPerRune, maxSentenceSpeech), letters*longTextPerRune)
}

// Arrival bounds the wait for a synthesizer's sound. The time left starts at the maximum
// pause. Waiting reduces it, and each piece of sound raises it by eight times the duration
// of the piece, up to the maximum pause. Sound that keeps arriving slower than an eighth of
// its playing speed therefore uses up the time, even without a long pause. The wait for
// the first sound does not count, nor does the time that the caller spends on the sound.
type Arrival struct {
	maxPause time.Duration
	left     time.Duration // may be negative
	begun    bool          // some sound has arrived
}

// waitPerSound is the waiting time that a piece of sound adds, as a multiple of its duration.
const waitPerSound = 8

// NewArrival returns an Arrival for sound that may pause for at most maxPause.
func NewArrival(maxPause time.Duration) *Arrival { return &Arrival{maxPause: maxPause, left: maxPause} }

// Left returns the maximum wait for the next piece of sound.
func (a *Arrival) Left() time.Duration { return max(a.left, 0) }

// Trickles reports whether less than the maximum pause is left. If the next wait then uses up
// the time, the cause is slow arrival, not a single pause.
func (a *Arrival) Trickles() bool { return a.left < a.maxPause }

// Waited subtracts a wait from the time left.
func (a *Arrival) Waited(d time.Duration) { a.left -= d }

// Received adds waiting time for a piece of sound of this duration.
func (a *Arrival) Received(sound time.Duration) {
	if !a.begun && sound > 0 {
		a.begun, a.left = true, a.maxPause // the wait for the first sound does not count
	}
	a.left = min(a.left+waitPerSound*sound, a.maxPause)
}

// Converter converts a synthesizer's samples to SpeakerRate and bounds their number.
type Converter struct {
	maxSamples int // maximum number of samples passed to out
	samples    int // number of samples passed to out
	rate       int // rate of the input in Hz; 0 before the first call of SetRate
	resampler  *Resampler
	arrival    *Arrival
	out        func([]int16) error
}

// NewConverter returns a Converter that passes sound of at most maxDuration to out. arrival
// may be nil. SetRate must be called before Convert.
func NewConverter(maxDuration time.Duration, arrival *Arrival, out func([]int16) error) *Converter {
	return &Converter{maxSamples: int(maxDuration * SpeakerRate / time.Second), arrival: arrival, out: out}
}

// SetRate sets the rate of the following samples, in Hz. It changes nothing and returns false
// if the rate is not Playable.
func (c *Converter) SetRate(hz int) bool {
	if !Playable(hz) {
		return false
	}
	if hz != c.rate {
		c.rate, c.resampler = hz, NewResampler(hz, SpeakerRate)
	}
	return true
}

// Convert converts mono samples and passes them to out. It returns out's error. If the sound
// exceeds the limit, Convert passes only the sound up to the limit and returns ErrEndless.
func (c *Converter) Convert(pcm []int16) error {
	if c.arrival != nil {
		c.arrival.Received(time.Duration(len(pcm)) * time.Second / time.Duration(c.rate))
	}
	resampled := c.resampler.Resample(pcm)
	over := len(resampled) > c.maxSamples-c.samples
	if over {
		resampled = resampled[:c.maxSamples-c.samples]
	}
	c.samples += len(resampled)
	if len(resampled) > 0 {
		if err := c.out(resampled); err != nil {
			return err
		}
	}
	if over {
		return ErrEndless
	}
	return nil
}

// ConvertAll converts the samples that read returns, until read returns io.EOF. It returns the
// errors of read and Convert unchanged, and ctx's error if ctx ends.
func (c *Converter) ConvertAll(ctx context.Context, read func(pcm []int16) (int, error)) error {
	var pcm [2048]int16
	for {
		if err := ctx.Err(); err != nil {
			return err // checked here, because a lot of sound may be buffered
		}
		n, err := read(pcm[:])
		if n > 0 {
			if err := c.Convert(pcm[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Sounded reports whether any sound was passed on.
func (c *Converter) Sounded() bool { return c.samples > 0 }
