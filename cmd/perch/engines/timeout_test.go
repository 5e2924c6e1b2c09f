package engines

import (
	"testing"
	"time"

	"perch/cmd/perch/config"
	"perch/remote"
)

// TestABrainIsWaitedForAsLongAsTheNextCanAnswer: a silent brain is given up after the
// same time as every engine where another follows it in the list. The last has its driver's time.
func TestABrainIsWaitedForAsLongAsTheNextCanAnswer(t *testing.T) {
	list := []config.Engine{{Kind: "reflex"}, {Kind: "openai"}, {Kind: "anthropic"}}
	for i, want := range []time.Duration{remote.Patience, remote.Patience, 0} {
		if got := responseTimeout(list, i); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
}
