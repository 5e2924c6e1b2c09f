package main

import (
	"context"
	"log/slog"
	"testing"

	"perch/cmd/perch/config"
)

// TestAWyomingServerNeedsNoAddress: it is looked for on the network.
func TestAWyomingServerNeedsNoAddress(t *testing.T) {
	c, err := loadConfig(written(t, "speech:\n  recognizers: [{kind: wyoming}]\n  synthesizers: [{kind: wyoming}]"), nil)
	if err != nil {
		t.Fatal(err)
	}
	nobody := func(context.Context) ([]string, error) { return nil, nil }
	e, err := newEngines(&c, mindOf{}, nobody, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	e.close()
}

// TestALanguageTheReflexBrainDoesNotSpeak is taken where other brains answer:
// what the appliance says by itself is English then.
func TestALanguageTheReflexBrainDoesNotSpeak(t *testing.T) {
	c := config.Default()
	c.Language, c.Brains = "de-AT", []config.Brain{{Kind: "none"}}
	if wrong := (config.Source{Check: checkPart}).Recheck(&c); wrong != nil {
		t.Errorf("it is refused: %v", wrong)
	}
	book, err := config.Book(&c)
	if err != nil || book.Phrase("failed") == "" {
		t.Errorf("its own sentences: %v", err)
	}
}
