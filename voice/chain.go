package voice

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Recognizers tries engines in order. If one returns an error, the next one recognizes the
// same utterance from its beginning. The transcript of the first engine without an error is
// final, even if it is refused: because the engine refused it, because it holds nothing but
// markup, or because it is a sentence that recognizers invent for silence.
type Recognizers []Recognizer

// Name returns the first engine's name.
func (r Recognizers) Name() string { return r[0].Name() }

// Recognize implements Recognizer.
func (r Recognizers) Recognize(ctx context.Context, u *Utterance, o Options) (Transcript, error) {
	if o.Deaf {
		return Transcript{Refused: true}, u.Wait(ctx)
	}
	var failures []error
	for _, engine := range r {
		t, err := engine.Recognize(ctx, u, o)
		if err == nil {
			return filterTranscript(t, u), nil
		}
		if ctx.Err() != nil {
			return t, err
		}
		failures = append(failures, fmt.Errorf("%s: %w", engine.Name(), err))
	}
	return Transcript{}, errors.Join(failures...)
}

// Synthesizers tries engines in order. If an engine fails after it has made some sound, the
// next one is not tried, because the listener would hear the same text twice.
type Synthesizers []Synthesizer

// Name returns the first engine's name.
func (s Synthesizers) Name() string { return s[0].Name() }

// Synthesize implements Synthesizer.
func (s Synthesizers) Synthesize(ctx context.Context, text string, o Options, out func([]int16) error) error {
	if o.Mute {
		return synthesizeSilence(ctx, text, out)
	}
	var failures []error
	for i, engine := range s {
		if i > 0 {
			o.Voice = "" // the caller has chosen the voice for the first engine
		}
		sounded := false
		err := engine.Synthesize(ctx, text, o, func(pcm []int16) error {
			sounded = true
			return out(pcm)
		})
		if err == nil || ctx.Err() != nil {
			return err
		}
		failures = append(failures, fmt.Errorf("%s: %w", engine.Name(), err))
		if sounded {
			break
		}
	}
	return errors.Join(failures...)
}

// Time for which a text is shown that is not spoken.
const (
	minShown     = time.Second
	shownPerRune = 100 * time.Millisecond
)

// synthesizeSilence calls out with pieces of silence that last as long as it takes to read a text.
func synthesizeSilence(ctx context.Context, text string, out func([]int16) error) error {
	shown := max(minShown, time.Duration(utf8.RuneCountInString(text))*shownPerRune)
	for range shown / FrameDuration {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := out(make([]int16, SpeakerFrame)); err != nil {
			return err
		}
	}
	return nil
}
