package thinker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"perch/agent"
	"perch/agent/thinker"
	"perch/voice"
)

// endless is a model that writes the same piece again and again, with pauses.
type endless struct {
	piece string
	pause time.Duration
}

func (endless) Name() string { return "endless" }

func (m endless) Continue(ctx context.Context, _ thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	for began := time.Now(); time.Since(began) < 24*time.Hour; { // bounded, so that a failing test ends
		if err := out(thinker.Piece{Text: m.piece}); err != nil {
			return "", err
		}
		select {
		case <-time.After(m.pause):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return thinker.StopEnd, nil
}

// TestEndlessModels checks that the length of a reply, the length of a sentence and the time of a model are
// bounded, and that a phrase says that the reply was cut off.
func TestEndlessModels(t *testing.T) {
	for name, test := range map[string]struct {
		m    endless
		away bool // whether nothing is spoken and the error wraps agent.ErrAway, so that another brain can answer
	}{
		"short sentences":            {m: endless{"I think so. ", time.Millisecond}},
		"one sentence":               {m: endless{"and so on ", time.Millisecond}},
		"one word":                   {m: endless{"a", time.Millisecond}},
		"a piece of 1 MB":            {m: endless{strings.Repeat("Over and over again. ", 50000), time.Millisecond}},
		"dots":                       {m: endless{"...", time.Millisecond}},
		"code":                       {m: endless{"```\ncode\n", time.Millisecond}},
		"facts":                      {m: endless{"[REMEMBER: the sky is blue]", time.Millisecond}},
		"a letter each half second":  {m: endless{"a ", 500 * time.Millisecond}},
		"nothing, each half second":  {m: endless{"", 500 * time.Millisecond}, away: true},
		"spaces, each half second":   {m: endless{" ", 500 * time.Millisecond}, away: true},
		"a fence, each half second":  {m: endless{"`", 500 * time.Millisecond}, away: true},
		"a smile, each half minute":  {m: endless{"🙂", 30 * time.Second}},
		"a sentence a minute":        {m: endless{"Wait for it. ", time.Minute}},
		"a sentence each 10 minutes": {m: endless{"Wait for it. ", 10 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, letters, sentences, notes := time.Now(), 0, 0, 0
				var last agent.Reply
				latest := ""
				err := thinker.New(thinker.Options{Model: test.m}).Think(t.Context(), agent.Turn{Text: "Well?"}, func(r agent.Reply) error {
					switch r := r.(type) {
					case agent.Say:
						n := utf8.RuneCountInString(r.Text)
						if n > 1000 {
							t.Errorf("a sentence of %d letters", n)
						}
						letters, sentences, latest = letters+n, sentences+1, r.Text
					case agent.Note:
						notes++
					}
					last = r
					return nil
				})
				if letters > 8400 || sentences > 101 || notes > 20 {
					t.Errorf("%d letters in %d sentences are spoken, %d facts remembered", letters, sentences, notes)
				}
				if took := time.Since(began); took > 5*time.Minute {
					t.Errorf("it took %s", took)
				}
				if test.away {
					if !errors.Is(err, agent.ErrAway) || sentences > 0 {
						t.Errorf("%d sentences, %v", sentences, err)
					}
					return
				}
				if _, done := last.(agent.Done); err != nil || !done || latest != "I was cut off." {
					t.Errorf("it ends with %q and %#v, %v", latest, last, err)
				}
			})
		})
	}
}

// TestSpeakingDoesNotCountAsModelTime checks that the time in which sentences are spoken does not count
// towards modelWithin.
func TestSpeakingDoesNotCountAsModelTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{script: []message{{texts: strings.SplitAfter(strings.Repeat("It was a dark night. ", 60), ". ")}}}
		said := 0
		err := thinker.New(thinker.Options{Model: m}).Think(t.Context(), agent.Turn{}, func(r agent.Reply) error {
			if _, ok := r.(agent.Say); ok {
				said++
				time.Sleep(20 * time.Second)
			}
			return nil
		})
		if err != nil || said != 60 {
			t.Errorf("%d sentences, %v", said, err)
		}
	})
}

// DescribeImage describes a picture without end.
func (m endless) DescribeImage(ctx context.Context, _ agent.Look) (string, error) {
	_, err := m.Continue(ctx, thinker.Prompt{}, func(thinker.Piece) error { return nil })
	return "", err
}

func TestDescribeImageTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := thinker.New(thinker.Options{Model: endless{"a ", time.Second}}).DescribeImage(t.Context(), agent.Look{})
		if took := time.Since(began); took > 5*time.Minute || !errors.Is(err, agent.ErrAway) {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// talker is a Speaker that speaks without end, faster than it can be played.
type talker struct{ endless }

func (m talker) Begin(agent.Turn) thinker.Speaking { return m }

func (talker) Close() error { return nil }

func (talker) Continue(ctx context.Context, _ thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	for range 24 * 3600 { // bounded, so that a failing test ends
		if err := out(thinker.Piece{Sound: make([]int16, voice.SpeakerRate)}); err != nil {
			return "", err
		}
	}
	return thinker.StopEnd, ctx.Err()
}

// TestEndlessSpeech checks that the speech of a Speaker is bounded, and that a phrase says that it was cut off.
func TestEndlessSpeech(t *testing.T) {
	phrases := func(_, name string) string { return map[string]string{"cut_off": "I was cut off."}[name] }
	seconds, said := 0, ""
	err := thinker.New(thinker.Options{Model: talker{}, Phrases: phrases}).Think(t.Context(), agent.Turn{Speech: voice.NewUtterance()}, func(r agent.Reply) error {
		switch r := r.(type) {
		case agent.Sound:
			seconds += len(r.PCM) / voice.SpeakerRate
		case agent.Say:
			said += r.Text
		}
		return nil
	})
	if err != nil || seconds != 8*60 || said != "I was cut off." {
		t.Errorf("%d s of sound, %q, %v", seconds, said, err)
	}
}
