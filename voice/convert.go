package voice

import (
	"errors"
	"time"
	"unicode/utf8"
)

// ErrEndless is returned by a Converter for more sound than the text is worth.
var ErrEndless = errors.New("does not stop speaking")

// Playable reports whether sound of that rate, in Hz, can be resampled at a
// price worth paying: rates that have little in common with 24 kHz want filters
// of many megabytes, and no voice has one.
func Playable(rate int) bool { return rate >= 8000 && rate <= 48000 && rate%25 == 0 }

// How long a text may take to be said. The slowest voices take a fifth of a
// second for a character.
const (
	leastSpeech     = 10 * time.Second
	speechOfLetter  = 500 * time.Millisecond
	mostSpeech      = 2 * time.Minute // of a sentence
	speechOfALetter = 200 * time.Millisecond
)

// LongestSpeech is the most sound that a text is worth: ten seconds and half a
// second for each character, up to two minutes; of a text that is no sentence
// any more, a fifth of a second for each.
func LongestSpeech(text string) time.Duration {
	letters := time.Duration(utf8.RuneCountInString(text))
	return max(min(leastSpeech+letters*speechOfLetter, mostSpeech), letters*speechOfALetter)
}

// Arrival is how long a synthesizer may be waited for while its sound arrives.
// A piece of sound buys eight times its own length of waiting, up to the longest
// silence; so what comes at less than an eighth of the speed it is played at
// comes to an end, however evenly it trickles. The time that the listener takes
// is not counted, nor is the wait for the first byte.
type Arrival struct {
	most, left time.Duration
	begun      bool
}

// worth is how much waiting a piece of sound buys, in its own lengths.
const worth = 8

// NewArrival returns the patience for a sound that may pause for so long.
func NewArrival(longest time.Duration) *Arrival { return &Arrival{most: longest, left: longest} }

// Left is how long the next byte may take.
func (a *Arrival) Left() time.Duration { return max(a.left, 0) }

// Trickles reports whether it is the slowness of what came that has used up the
// patience, and not one silence.
func (a *Arrival) Trickles() bool { return a.left < a.most }

// Waited takes off what was waited.
func (a *Arrival) Waited(d time.Duration) { a.left -= d }

// Came adds what a piece of sound is worth.
func (a *Arrival) Came(sound time.Duration) {
	if !a.begun && sound > 0 {
		a.begun, a.left = true, a.most // what was waited for was the beginning
	}
	a.left = min(a.left+worth*sound, a.most)
}

// Converter makes of a synthesizer's samples what a speaker takes, and bounds
// how much of it there is.
type Converter struct {
	most      int // samples at the speaker's rate
	passed    int
	rate      int
	resampler *Resampler
	arrival   *Arrival
	out       func([]int16) error
}

// NewConverter returns one that passes on at most so much sound. The arrival may
// be nil. Rate is called before Convert.
func NewConverter(most time.Duration, arrival *Arrival, out func([]int16) error) *Converter {
	return &Converter{most: int(most * SpeakerRate / time.Second), arrival: arrival, out: out}
}

// Rate says at what rate the samples that follow are. It reports whether that
// is one that can be played.
func (c *Converter) Rate(hz int) bool {
	if !Playable(hz) {
		return false
	}
	if hz != c.rate {
		c.rate, c.resampler = hz, NewResampler(hz, SpeakerRate)
	}
	return true
}

// Convert passes mono samples on. Its error is that of out, or
// ErrEndless once all there may be was passed on.
func (c *Converter) Convert(pcm []int16) error {
	if c.arrival != nil {
		c.arrival.Came(time.Duration(len(pcm)) * time.Second / time.Duration(c.rate))
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
