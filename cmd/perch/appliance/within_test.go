package appliance

import (
	"testing"
	"time"

	"perch/cmd/perch/config"
	"perch/remote"
)

// TestABrainIsWaitedForAsLongAsTheNextCanAnswer: a silent brain is given up after the
// same time as every engine where another follows it in the list. A configured time, a
// coding agent's and that of the last brain stay as they are.
func TestABrainIsWaitedForAsLongAsTheNextCanAnswer(t *testing.T) {
	own := config.Duration(time.Minute)
	list := []config.Brain{{Kind: "reflex"}, {Kind: "openai"}, {Kind: "openai", Within: own}, {Kind: "acp"}, {Kind: "assist"}, {Kind: "anthropic"}}
	want := []config.Duration{config.Duration(remote.Patience), config.Duration(remote.Patience), own, 0, config.Duration(remote.Patience), 0}
	for i, b := range list {
		if got := brainWithin(list, i); got != want[i] {
			t.Errorf("%d, %s: %s, want %s", i, b.Kind, time.Duration(got), time.Duration(want[i]))
		}
	}
}
