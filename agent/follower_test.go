package agent_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perch/agent"
	"perch/device"
	"perch/event"
)

// TestFollowersAgreeWithTheBoard: whatever happens, and wherever a follower
// begins or loses events, the last change it was given of a session is the
// board's state, and states that end by themselves are given once, in their time.
func TestFollowersAgreeWithTheBoard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		board, now, seq := agent.NewBoard(), noon, uint64(0)
		type reader struct {
			*agent.Follower
			shown map[string]agent.Shown
			deaf  bool // it loses events
		}
		var readers []*reader
		take := func(r *reader, changes []agent.Change) {
			for _, c := range changes {
				if c.At.After(now) {
					t.Fatalf("%s at %s, which is to come", c.State.Key(), c.At)
				}
				r.shown[c.State.Key()] = c.State.At(c.At)
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			if rapid.IntRange(0, 7).Draw(t, "joins") == 0 {
				r := &reader{board.Follow(now), map[string]agent.Shown{}, false}
				for _, s := range r.States() {
					r.shown[s.Key()] = s.At(now)
				}
				readers = append(readers, r)
			}
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 3000, 4000, 5000, 90_000_000, 700_000_000}).Draw(t, "ms")) * time.Millisecond)
			seq++
			e := event.Envelope{Seq: seq, At: now, Event: anEvent(t), Session: rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "session")}
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1, 2, 3:
				e.Robot = "a0b1c2d3e4f5"
			case 4:
				e.Robot = "a0b1c2d3e4f6"
			case 5:
				e.Robot, e.Session, e.Event = "a0b1c2d3e4f5", "", event.RobotForgotten{}
			}
			board.Take(e)
			for _, r := range readers {
				switch rapid.IntRange(0, 9).Draw(t, "reader") {
				case 0:
					r.deaf = true
				case 1:
					take(r, r.Take(event.Envelope{Seq: 0, At: now, Event: event.Missed{N: 1}}))
					r.deaf = false
				case 2, 3:
					take(r, r.Pass(now))
				}
				if !r.deaf {
					take(r, r.Take(e))
				}
			}
		}
		want := map[string]agent.Shown{}
		states, at := board.Snapshot()
		for _, s := range states {
			want[s.Key()] = s.At(now)
		}
		for i, r := range readers {
			if r.deaf {
				take(r, r.Take(event.Envelope{At: now, Event: event.Missed{N: 1}}))
			}
			take(r, r.Pass(now))
			if due := r.Due(); !due.IsZero() && !due.After(now) {
				t.Fatalf("reader %d waits for %s, which is over", i, due)
			}
			if r.Seq() != at || fmt.Sprintf("%+v", r.States()) != fmt.Sprintf("%+v", states) {
				t.Fatalf("reader %d at %d has %+v, and the board at %d %+v", i, r.Seq(), r.States(), at, states)
			}
			for key, shown := range r.shown {
				if known := want[key]; shown != known && (known != "" || shown != agent.Idle) {
					t.Fatalf("reader %d was given %s of %s, which shows %q", i, shown, key, known)
				}
			}
			for key, shown := range want {
				if r.shown[key] != shown {
					t.Fatalf("reader %d was given %q of %s, which shows %s", i, r.shown[key], key, shown)
				}
			}
		}
	})
}

// TestAFollowerGivesAStateThatEndsBeforeWhatComesNext, at the time it ended.
func TestAFollowerGivesAStateThatEndsBeforeWhatComesNext(t *testing.T) {
	const robot device.ID = "a0b1c2d3e4f5"
	f := agent.NewBoard().Follow(noon)
	take := func(seq uint64, after time.Duration, e event.Event) (got []string) {
		for _, c := range f.Take(event.Envelope{Seq: seq, At: noon.Add(after), Robot: robot, Session: "s", Event: e}) {
			got = append(got, fmt.Sprintf("%s at %s by itself %t", c.State.At(c.At), c.At.Sub(noon), c.By == nil))
		}
		return got
	}
	take(1, 0, event.TurnEnded{End: event.EndDone})
	if due := f.Due(); due != noon.Add(4*time.Second) {
		t.Errorf("it is due at %s", due)
	}
	if got := fmt.Sprint(take(2, time.Minute, event.ListeningStarted{})); got != "[idle at 4s by itself true listening at 1m0s by itself false]" {
		t.Error(got)
	}
	if got := take(2, time.Hour, event.ThinkingStarted{}); len(got) > 0 || f.Robot(robot).At(noon) != agent.Listening || !f.Due().IsZero() {
		t.Errorf("an event was taken twice: %q", got)
	}
}
