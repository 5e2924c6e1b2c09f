package sherpa

import (
	"slices"
	"testing"

	"perch/voice"
)

// TestLongSoundIsSplitWhereItIsQuiet splits a tone of 15 s with a pause after 5.2 s.
func TestLongSoundIsSplitWhereItIsQuiet(t *testing.T) {
	pcm := make([]int16, 15*voice.MicRate)
	for i := range pcm {
		if second := float64(i) / voice.MicRate; second < 5.2 || second > 5.5 {
			pcm[i] = int16(1000 - 2000*(i/40%2))
		}
	}
	pieces := split(pcm)
	if len(pieces) < 2 || !slices.Equal(slices.Concat(pieces...), pcm) {
		t.Fatalf("%d pieces, which are not the sound", len(pieces))
	}
	if at := float64(len(pieces[0])) / voice.MicRate; at < 5.2 || at > 5.5 {
		t.Errorf("split at %.2f s", at)
	}
	for _, p := range pieces {
		if len(p) > maxPiece {
			t.Errorf("a piece of %d samples", len(p))
		}
	}
	if pieces := split(nil); len(pieces) != 0 {
		t.Errorf("%d pieces of nothing", len(pieces))
	}
}
