package voice

import (
	"context"
	"errors"
	"fmt"
)

// Recognizers tries engines in order. If one fails, the next gets the same
// utterance from its beginning. If one refuses, the utterance is refused, also if its text
// has only markup, or is one that recognizers invent for silence.
type Recognizers []Recognizer

// Name returns the first engine's name.
func (r Recognizers) Name() string { return r[0].Name() }

// Recognize implements Recognizer.
func (r Recognizers) Recognize(ctx context.Context, u *Utterance, o Options) (Transcript, error) {
	var failures []error
	for _, engine := range r {
		t, err := engine.Recognize(ctx, u, o)
		if err == nil {
			return clean(t, u), nil
		}
		if ctx.Err() != nil {
			return t, err
		}
		failures = append(failures, fmt.Errorf("%s: %w", engine.Name(), err))
	}
	return Transcript{}, errors.Join(failures...)
}

// Synthesizers tries engines in order. Once an engine has made sound, the next is
// not tried for the same text: it would be played twice.
type Synthesizers []Synthesizer

// Name returns the first engine's name.
func (s Synthesizers) Name() string { return s[0].Name() }

// Synthesize implements Synthesizer.
func (s Synthesizers) Synthesize(ctx context.Context, text string, o Options, out func([]int16) error) error {
	var failures []error
	for i, engine := range s {
		if i > 0 {
			o.Voice = "" // it belongs to the first engine
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
