package appliance

import (
	"context"
	"log/slog"
	"testing"

	"perch/cmd/perch/config"
)

// TestAWyomingServerNeedsNoAddress: it is looked for on the network.
func TestAWyomingServerNeedsNoAddress(t *testing.T) {
	c, err := (config.Source{File: written(t, "speech:\n  recognizers: [{kind: wyoming}]\n  synthesizers: [{kind: wyoming}]"), Check: CheckPart}).Load()
	if err != nil {
		t.Fatal(err)
	}
	nobody := func(context.Context) ([]string, error) { return nil, nil }
	e, err := NewEngines(&c, BrainOptions{}, nobody, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
}

// TestALanguageTheReflexBrainDoesNotSpeak is taken where other brains answer:
// what the appliance says by itself is English then.
func TestALanguageTheReflexBrainDoesNotSpeak(t *testing.T) {
	c := config.Default()
	c.Language, c.Brains = "de-AT", []config.Brain{{Kind: "none"}}
	if wrong := (config.Source{Check: CheckPart}).Recheck(&c); wrong != nil {
		t.Errorf("it is refused: %v", wrong)
	}
	book, err := config.Book(&c)
	if err != nil || book.Phrase("failed") == "" {
		t.Errorf("its own sentences: %v", err)
	}
}
