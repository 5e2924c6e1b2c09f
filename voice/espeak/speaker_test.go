package espeak

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestLongTextDoesNotDelayOthers checks that a short text waits only for a few pieces of the long
// texts, and not for their ends.
func TestLongTextDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	s := newSpeaker([]string{"/proc/self/exe", "serve-the-test"})
	defer s.close()
	const long, pieces = 8, 20
	var spoken atomic.Int64
	say := func(text string) {
		if err := s.speak(t.Context(), request{"en-us", 160, text}, func(int, []int16) error { return nil }); err != nil {
			t.Error(err)
		}
	}
	var all sync.WaitGroup
	begun := make(chan struct{}, long)
	for range long {
		all.Go(func() {
			for n := range pieces {
				say(strings.Repeat("and so on ", 10))
				if spoken.Add(1); n == 0 {
					begun <- struct{}{}
				}
			}
		})
	}
	for range long {
		<-begun
	}
	before := spoken.Load()
	say("hello")
	after := spoken.Load()
	if all.Wait(); after-before > 2*long {
		t.Errorf("%d pieces of others were spoken first, of %d", after-before, long*pieces-before)
	}
}
