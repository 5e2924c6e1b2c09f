package voice

import (
	"errors"
	"time"
	"unicode/utf8"
)

// ErrEndless is returned by a Converter if an engine makes more sound than allowed.
var ErrEndless = errors.New("does not stop speaking")

// Playable reports whether sound of that rate, in Hz, can be resampled at reasonable
// cost: rates that have little in common with 24 kHz need filters of many megabytes, and
// no voice has one.
func Playable(rate int) bool { return rate >= 8000 && rate <= 48000 && rate%25 == 0 }

// Limits for the sound of a text. The slowest voices take a fifth of a second per
// character.
const (
	minSpeech       = 10 * time.Second
	speechOfLetter  = 500 * time.Millisecond
	maxSpeech       = 2 * time.Minute // of a sentence
	speechOfALetter = 200 * time.Millisecond
)

// LongestSpeech is the longest sound accepted for a text: ten seconds and half a second
// per character, up to two minutes; for texts longer than a sentence, a fifth of a
// second per character.
func LongestSpeech(text string) time.Duration {
	letters := time.Duration(utf8.RuneCountInString(text))
	return max(min(minSpeech+letters*speechOfLetter, maxSpeech), letters*speechOfALetter)
}

// Arrival bounds the wait for a synthesizer's sound. Each piece of sound adds eight
// times its length, up to the longest pause, so sound that arrives slower than an eighth
// of its playing speed ends, however evenly it arrives. The listener's time does not
// count, nor does the wait for the first byte.
type Arrival struct {
	most, left time.Duration
	begun      bool
}

// worth is the waiting time that a piece of sound adds, as a multiple of its length.
const worth = 8

// NewArrival returns an Arrival for sound that may pause for at most longest.
func NewArrival(longest time.Duration) *Arrival { return &Arrival{most: longest, left: longest} }

// Left returns how long the next byte may take.
func (a *Arrival) Left() time.Duration { return max(a.left, 0) }

// Trickles reports whether slow arrival, rather than a single pause, has used up the
// time.
func (a *Arrival) Trickles() bool { return a.left < a.most }

// Waited subtracts time that was waited.
func (a *Arrival) Waited(d time.Duration) { a.left -= d }

// Received adds the time that a piece of sound is worth.
func (a *Arrival) Received(sound time.Duration) {
	if !a.begun && sound > 0 {
		a.begun, a.left = true, a.most // the wait so far was for the first byte
	}
	a.left = min(a.left+worth*sound, a.most)
}

// Converter converts a synthesizer's samples to the speaker's rate and bounds their
// number.
type Converter struct {
	most      int // samples at the speaker's rate
	passed    int
	rate      int
	resampler *Resampler
	arrival   *Arrival
	out       func([]int16) error
}

// NewConverter returns a Converter that passes at most this much sound to out. arrival
// may be nil. Rate must be called before Convert.
func NewConverter(most time.Duration, arrival *Arrival, out func([]int16) error) *Converter {
	return &Converter{most: int(most * SpeakerRate / time.Second), arrival: arrival, out: out}
}

// Rate sets the rate of the samples that follow. It reports whether that rate can be
// played.
func (c *Converter) Rate(hz int) bool {
	if !Playable(hz) {
		return false
	}
	if hz != c.rate {
		c.rate, c.resampler = hz, NewResampler(hz, SpeakerRate)
	}
	return true
}

// Convert converts mono samples and passes them to out. It returns out's error, or
// ErrEndless once the limit is reached.
func (c *Converter) Convert(pcm []int16) error {
	if c.arrival != nil {
		c.arrival.Received(time.Duration(len(pcm)) * time.Second / time.Duration(c.rate))
	}
	made := c.resampler.Resample(pcm)
	over := len(made) > c.most-c.passed
	if over {
		made = made[:c.most-c.passed]
	}
	c.passed += len(made)
	if len(made) > 0 {
		if err := c.out(made); err != nil {
			return err
		}
	}
	if over {
		return ErrEndless
	}
	return nil
}

// Sounded reports whether any sound was passed on.
func (c *Converter) Sounded() bool { return c.passed > 0 }
