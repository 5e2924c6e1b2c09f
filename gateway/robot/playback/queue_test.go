package playback

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
)

// TestSkipToPause checks that the sentences before a pause are dropped with their progress, and that a turn that waits for
// room goes on.
func TestSkipToPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{added: make(chan struct{}, 1), reported: make(chan struct{}, 1)}
		add := func(items ...item) {
			for _, it := range items {
				must.Succeed(t, q.add(t.Context(), it))
			}
		}
		first, second, third, wait := "One.", "Two.", "Three.", time.Second
		packets := func(n int) []item { return slices.Repeat([]item{{packet: []byte{1}}}, n) }
		add(item{sentence: &first})
		add(packets(2)...)
		q.removeFirst(time.Time{}) // the first sentence is being played
		add(item{sentence: &second})
		add(packets(maxPackets - 10)...)
		add(item{pause: &wait}, item{sentence: &third})
		add(packets(8)...)
		waiting := make(chan error, 1)
		go func() {
			_, _, err := q.awaitRoom(t.Context())
			waiting <- err
		}()
		synctest.Wait()
		q.skipToPause()
		must.Succeed(t, <-waiting)
		if len(q.later) != 1 || q.later[0].encoded != 8 || q.packets != 8 {
			t.Errorf("after the skip, %d packets and %+v are queued", q.packets, q.later)
		}
		q.removeFirst(time.Time{}) // the pause
		q.removeFirst(time.Time{}) // the start of the third sentence
		if q.sentence.encoded != 8 || len(q.later) != 0 {
			t.Errorf("the third sentence has %+v", q.sentence)
		}
	})
}
