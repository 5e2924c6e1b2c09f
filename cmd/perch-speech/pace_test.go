package main

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"perch/cmd/perch-speech/models"
	"perch/voice"
)

// sleeper is a recognizer that takes time for an utterance.
type sleeper time.Duration

// Name implements voice.Recognizer.
func (sleeper) Name() string { return "sleeper" }

// Recognize implements voice.Recognizer.
func (s sleeper) Recognize(context.Context, *voice.Utterance, voice.Options) (voice.Transcript, error) {
	time.Sleep(time.Duration(s))
	return voice.Transcript{}, nil
}

func TestMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if pace, err := measure(t.Context(), sleeper(3250*time.Millisecond)); err != nil || pace < 1.9 || pace > 2.1 {
			t.Errorf("3.25 s for a sentence of 1.6 s are %.2f s for each second (%v)", pace, err)
		}
	})
}

// TestOnlyFastRecognizersAreOffered checks that a recognizer is offered when it is known to be fast, or if slow ones are wanted.
func TestOnlyFastRecognizersAreOffered(t *testing.T) {
	list := []models.Installed{{Name: "moonshine-base-en", Job: models.Hears, Language: "en"}, {Name: "anna", Job: models.Speaks, Language: "de"}}
	e := engines{load: &loader{log: slog.New(slog.DiscardHandler)}}
	check := func(what string, want int) {
		t.Helper()
		if e.set(list); len(e.options.Recognizers) != want || len(e.options.Synthesizers) != 1 {
			t.Errorf("%s: %d recognizers and %d voices are offered", what, len(e.options.Recognizers), len(e.options.Synthesizers))
		}
	}
	check("untried", 0)
	e.candidates["moonshine-base-en"].isFast = true
	check("fast", 1)
	e.set(nil)
	check("removed, and put there again", 0)
	e.offersSlow = true
	check("with slow ones", 1)
}
