package voice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Recognizers tries engines in order. If an engine returns an error, the next engine recognizes
// the same utterance from its beginning. The transcript of the first engine without an error is
// final, even if it is refused. A transcript is refused if the engine has refused it, if it holds
// no letter and no digit outside of markup, or if it is a sentence that recognizers invent for silence
// and the utterance may have been silence.
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
			return FilterTranscript(t, u), nil
		}
		if ctx.Err() != nil {
			return t, err
		}
		failures = append(failures, fmt.Errorf("%s: %w", engine.Name(), err))
	}
	return Transcript{}, errors.Join(failures...)
}

// RecognizePatiently recognizes an utterance. If r returns ErrBusy, which no recognizer does before the end
// of the utterance, RecognizePatiently calls busy and then r again, with the option Patient. The error wraps
// ErrBusy if r is still busy at the end of the longer wait.
func RecognizePatiently(ctx context.Context, r Recognizer, u *Utterance, o Options, busy func()) (Transcript, error) {
	t, err := r.Recognize(ctx, u, o)
	if !errors.Is(err, ErrBusy) || ctx.Err() != nil {
		return t, err
	}
	busy()
	o.Patient = true
	return r.Recognize(ctx, u, o)
}

// Synthesizers tries engines in order. If an engine fails after it has made some sound, the
// next one is not tried, because the listener would hear the same text twice. If no engine has
// read the text and an engine has returned ErrText, the text is divided by script: pieces in
// Chinese or Japanese script are read in one of these languages, the others in the language of
// the call.
type Synthesizers []Synthesizer

// Name returns the first engine's name.
func (s Synthesizers) Name() string { return s[0].Name() }

// Synthesize implements Synthesizer. If some pieces of a divided text cannot be read, Synthesize speaks the
// others and returns an error that wraps ErrText. If it has spoken nothing and an engine failed for another
// reason, it returns the error of that engine.
func (s Synthesizers) Synthesize(ctx context.Context, text string, o Options, out func([]int16) error) error {
	if o.Mute {
		return Silence(ctx, text, out)
	}
	failed, refused := s.synthesize(ctx, text, o, out)
	if !errors.Is(refused, ErrText) {
		return cmp.Or(failed, refused)
	}
	language := hanLanguage(text, o.Language)
	var unread, away error
	spoken := false
	for piece, isHan := range scripts(text) {
		own := o
		if isHan && language != BaseLanguage(o.Language) {
			own.Language, own.Voice = language, ""
		}
		failed, refused := s.synthesize(ctx, piece, own, out)
		switch {
		case failed == nil && refused == nil:
			spoken = true
		case refused == nil:
			return failed
		default:
			unread = fmt.Errorf("%w: %w", ErrText, errors.Join(failed, refused))
			away = cmp.Or(away, failed)
		}
	}
	if unread != nil && away != nil && !spoken {
		return away // the engine may read the text later
	}
	return unread
}

// synthesize tries the engines with the whole text, in the language of o. Both errors are nil if an engine has
// spoken the text. refused joins the errors of engines that do not support the language or the text, and failed
// joins the errors of the other engines. refused is nil if an engine failed after it had made some sound, or if
// ctx has ended.
func (s Synthesizers) synthesize(ctx context.Context, text string, o Options, out func([]int16) error) (failed, refused error) {
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
			return err, nil
		}
		err = fmt.Errorf("%s: %w", engine.Name(), err)
		switch {
		case sounded:
			return errors.Join(failed, err), nil
		case errors.Is(err, ErrLanguage):
			refused = errors.Join(refused, err)
		default:
			failed = errors.Join(failed, err)
		}
	}
	return failed, refused
}

// scripts divides a text into pieces. isHan reports whether the letters of a piece are kana or
// Chinese characters; a piece never mixes them with other letters. Characters that are not letters
// belong to the piece before them.
func scripts(text string) iter.Seq2[string, bool] {
	return func(yield func(piece string, isHan bool) bool) {
		begin, isHan, lettered := 0, false, false
		for i, r := range text {
			han := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
			switch {
			case !unicode.IsLetter(r), unicode.Is(unicode.Lm, r): // unicode.Lm includes signs such as ー
				continue
			case lettered && han != isHan:
				if !yield(text[begin:i], isHan) {
					return
				}
				begin = i
			}
			isHan, lettered = han, true
		}
		yield(text[begin:], isHan)
	}
}

// hanLanguage returns the language of the Chinese characters in a text: Japanese if the text has
// kana or if around, the language of the call, is Japanese, and otherwise Chinese.
func hanLanguage(text, around string) string {
	if BaseLanguage(around) == "ja" || strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana) }) {
		return "ja"
	}
	return "zh"
}

// Silence lasts shownPerRune for each character of a text, at least minShown.
const (
	minShown     = time.Second
	shownPerRune = 100 * time.Millisecond
)

// Silence calls out with 24 kHz silence whose duration is the time that it takes to read a text. It returns
// the first error of out, and ctx's error if ctx ends.
func Silence(ctx context.Context, text string, out func([]int16) error) error {
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
