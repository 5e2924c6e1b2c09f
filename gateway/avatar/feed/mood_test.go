package feed

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"perch/event"
)

// TestUnusedMoodsAreBounded checks that at most maxMoods moods are stored, and that no frames are made
// for moods if no viewer has subscribed to them.
func TestUnusedMoodsAreBounded(t *testing.T) {
	f := &Feed{viewers: map[*Viewer]bool{{out: newOutbox(), filter: Filter{Kinds: RFCKinds()}}: true}, moods: moods{}}
	for n := range maxMoods + 10 {
		f.sendMood(event.Envelope{At: time.Unix(int64(n+1), 0), Session: fmt.Sprint(n), Event: event.Mood{}})
	}
	if len(f.moods) != maxMoods || f.moods["0"] != nil {
		t.Errorf("%d moods are kept", len(f.moods))
	}
	for _, m := range f.moods {
		if m.frame != nil {
			t.Fatal("a frame was made for nobody")
		}
	}
}

// TestUnreadMoodsAreReplaced checks that a queued mood is replaced by later moods of the same session.
func TestUnreadMoodsAreReplaced(t *testing.T) {
	s := &Viewer{out: newOutbox(), filter: Filter{Kinds: AllKinds()}}
	f := &Feed{viewers: map[*Viewer]bool{s: true}, moods: moods{}}
	for n := range 100_000 {
		f.sendMood(event.Envelope{At: time.Unix(int64(n+1), 0), Session: "s", Event: event.Mood{Dominant: fmt.Sprint(n)}})
	}
	if n := len(s.out.queue); n > crowded+1 || s.out.late {
		t.Errorf("%d frames wait", n)
	}
	if last := s.out.queue[len(s.out.queue)-1]; !strings.Contains(string(last.Data), `"dominant":"99999"`) {
		t.Errorf("the latest is %s", last.Data)
	}
}
