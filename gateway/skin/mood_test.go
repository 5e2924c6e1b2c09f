package skin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"perch/event"
)

// TestMoodsReachThoseWhoAskForThem, with gestures and looks, and nobody else.
func TestMoodsReachThoseWhoAskForThem(t *testing.T) {
	h := newHarness(t)
	usual, c := h.connect(t), h.connect(t)
	c.send(`{"type":"subscribe","events":["gesture","look_at","mood","notification"]}`)
	c.send(`{"type":"ping"}`)
	if got := c.next(); !strings.Contains(got, `"pong"`) {
		t.Fatal(got)
	}
	h.happens("", "s", event.Gesture{Name: "wave", Duration: 1500, By: event.ByModel}, event.LookAt{Target: "user", By: event.ByModel},
		event.Mood{Dominant: "celebration", Face: "happy", Feelings: event.Feelings{Celebration: .7}, Morphs: event.Morphs{MouthSmile: .6}})
	got := strings.Join(c.until(), "\n")
	for _, want := range []string{`"duration_ms":1500`, `"target":"user"`, `"celebration":0.7`, `"mouthSmile":0.6`, `"session_id":"s"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if got := strings.Join(usual.until(), "\n"); strings.Contains(got, "celebration") || strings.Contains(got, "wave") {
		t.Errorf("a skin that did not ask for it is sent %s", got)
	}
	late := h.connect(t)
	late.send(`{"type":"subscribe","events":["mood","notification"]}`)
	late.send(`{"type":"ping"}`)
	for got := ""; !strings.Contains(got, "pong"); got = late.next() {
		if strings.Contains(got, `"dominant":"celebration"`) {
			return
		}
	}
	t.Error("a skin that comes later is not sent the mood")
}

// TestMoodsThatNobodyTakesCostNothing: no frame is made, and not all are kept.
func TestMoodsThatNobodyTakesCostNothing(t *testing.T) {
	f := &feed{skins: map[*skin]bool{{out: newOutbox(), filter: filter{kinds: rfcKinds()}}: true}, moods: moods{}}
	for n := range mostMoods + 10 {
		f.feel(event.Envelope{At: time.Unix(int64(n+1), 0), Session: fmt.Sprint(n), Event: event.Mood{}})
	}
	if len(f.moods) != mostMoods || f.moods["0"] != nil {
		t.Errorf("%d moods are kept", len(f.moods))
	}
	for _, m := range f.moods {
		if m.frame != nil {
			t.Fatal("a frame was made for nobody")
		}
	}
}

// TestAMoodSubscriberThatDoesNotRead is held to one frame of a session.
func TestAMoodSubscriberThatDoesNotRead(t *testing.T) {
	s := &skin{out: newOutbox(), filter: filter{kinds: allKinds()}}
	f := &feed{skins: map[*skin]bool{s: true}, moods: moods{}}
	for n := range 100_000 {
		f.feel(event.Envelope{At: time.Unix(int64(n+1), 0), Session: "s", Event: event.Mood{Dominant: fmt.Sprint(n)}})
	}
	if n := len(s.out.waiting); n > crowded+1 || s.out.late {
		t.Errorf("%d frames wait", n)
	}
	if last := s.out.waiting[len(s.out.waiting)-1]; !strings.Contains(string(last.data), `"dominant":"99999"`) {
		t.Errorf("the latest is %s", last.data)
	}
}
