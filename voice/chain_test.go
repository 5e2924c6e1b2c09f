package voice_test

import (
	"context"
	"fmt"
	"testing"

	"perch/voice"
)

// named records each call, and fails.
type named struct {
	name  string
	asked *[]string
}

func (n named) Name() string { return n.name }

func (n named) Synthesize(_ context.Context, text string, o voice.Options, _ func([]int16) error) error {
	*n.asked = append(*n.asked, fmt.Sprintf("%s %s %q %s", n.name, text, o.Voice, o.Language))
	return voice.ErrUnavailable
}

// TestVoiceNameIsForTheFirstEngineOnly: other engines have other names.
func TestVoiceNameIsForTheFirstEngineOnly(t *testing.T) {
	var asked []string
	chain := voice.Synthesizers{named{"first", &asked}, named{"second", &asked}}
	if err := chain.Synthesize(t.Context(), "hi", voice.Options{Voice: "af_heart", Language: "de"}, nil); err == nil {
		t.Error("nobody speaks, and nobody says so")
	}
	if got := fmt.Sprint(asked); got != `[first hi "af_heart" de second hi "" de]` {
		t.Errorf("asked was %s", got)
	}
}
