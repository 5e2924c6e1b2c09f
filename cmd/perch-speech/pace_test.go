package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"perch/cmd/perch-speech/models"
	"perch/must"
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

// TestModelsSettle checks that a model is loaded when its files have not changed for a while, and loaded again if that
// has failed.
func TestModelsSettle(t *testing.T) {
	m := models.Installed{Name: "anna", Dir: t.TempDir()}
	file := filepath.Join(m.Dir, "anna.onnx")
	must.Succeed(t, os.WriteFile(file, nil, 0o600))
	copied := stampsOf([]models.Installed{m})
	if settled(nil, copied) {
		t.Error("it is loaded while it is copied")
	}
	old := time.Now().Add(-time.Minute)
	must.Succeed(t, os.Chtimes(file, old, old))
	if later := stampsOf([]models.Installed{m}); !settled(nil, later) || maps.Equal(copied, later) || !settled(copied, copied) {
		t.Errorf("copied %v, %v", copied, later)
	}
	loads := 0
	e := engines{loaded: map[string]any{}}
	for range 3 {
		old := e.loaded
		e.loaded = map[string]any{}
		_, _ = once(&e, old, m, func(models.Installed) (int, error) {
			if loads++; loads == 1 {
				return 0, errors.New("it may not write there")
			}
			return loads, nil
		})()
	}
	if loads != 2 {
		t.Errorf("loaded %d times", loads)
	}
}
