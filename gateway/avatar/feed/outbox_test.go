package feed

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perch/agent"
	"perch/event"
	"perch/limit"
)

// drawFrame returns a random frame of one of three sessions. Its Data is n.
func drawFrame(t *rapid.T, n int) *Frame {
	session := rapid.SampledFrom([]string{"s1", "s2", "s3"}).Draw(t, "session")
	f := &Frame{Session: session, Data: fmt.Append(nil, n)}
	switch f.Kind = rapid.SampledFrom(append(RFCKinds(), KindStep, "")).Draw(t, "kind"); f.Kind {
	case KindState:
		f.key = "s " + session
	case KindFace:
		f.key = "f " + session
	case KindTool:
		f.key = fmt.Sprint("t ", session, rapid.IntRange(0, 200).Draw(t, "tool"))
	case KindNotice:
		f.key, f.low = fmt.Sprint("n ", rapid.IntRange(0, 200).Draw(t, "id")), rapid.Bool().Draw(t, "low")
	case KindStep:
		f.key = fmt.Sprint("c ", rapid.IntRange(0, 200).Draw(t, "id"))
	default:
		f.key = rapid.SampledFrom([]string{"pong", "error"}).Draw(t, "answer")
	}
	return f
}

// TestSlowViewer checks with random frames that a viewer either is late, or gets frames in the order in
// which they were queued, among them the newest frame with each key. Notifications of low urgency and
// changes of notifications may be missing.
func TestSlowViewer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOutbox()
		newest := map[string]*Frame{}
		order := map[*Frame]int{}
		for n := range rapid.IntRange(0, 600).Draw(t, "frames") {
			f := drawFrame(t, n)
			newest[f.key], order[f] = f, n
			o.enqueue(f)
			if len(o.queue) > crowded+3*2+limit.Tools+maxNotices+2 {
				t.Fatalf("%d frames wait", len(o.queue))
			}
		}
		var taken []*Frame
		late := false
		for {
			f, tooLate := o.pop()
			if late = late || tooLate; f == nil {
				break
			}
			taken = append(taken, f)
		}
		if late {
			if len(taken) > 0 {
				t.Fatal("one that is late is given more")
			}
			return
		}
		if !slices.IsSortedFunc(taken, func(a, b *Frame) int { return order[a] - order[b] }) {
			t.Fatal("the order is another")
		}
		for key, f := range newest {
			if !f.low && f.Kind != KindStep && !slices.Contains(taken, f) {
				t.Fatalf("the newest of %s is lost", key)
			}
		}
	})
}

// TestFewFramesAreRetained checks that an outbox drops no frame, not even a stale one, as long as it has
// at most crowded frames.
func TestFewFramesAreRetained(t *testing.T) {
	o := newOutbox()
	for range crowded {
		o.enqueue(&Frame{Kind: KindState, key: "s"})
	}
	for n := range crowded {
		if f, late := o.pop(); f == nil || late {
			t.Fatalf("%d were kept", n)
		}
	}
	for n := range 10 * crowded {
		o.enqueue(&Frame{Kind: KindState, key: "s", Data: fmt.Append(nil, n)})
	}
	for n := 0; ; n++ {
		f, late := o.pop()
		if late || n > crowded {
			t.Fatal("it is late")
		}
		if f == nil {
			break
		}
		if next, _ := o.pop(); next == nil && string(f.Data) != "319" {
			t.Errorf("the last is %s", f.Data)
		} else if next != nil {
			o.queue = append([]*Frame{next}, o.queue...)
		}
	}
}

// TestLateViewer checks how many notifications and tools make a viewer late, and that notifications of
// low urgency are dropped, oldest first.
func TestLateViewer(t *testing.T) {
	for _, c := range []struct {
		kind string
		low  bool
		n    int
		late bool
	}{
		{KindNotice, false, maxNotices, false}, {KindNotice, false, maxNotices + 1, true}, {KindNotice, true, 10 * maxNotices, false},
		{KindTool, false, limit.Tools, false}, {KindTool, false, limit.Tools + 1, true}, {KindStep, false, 10 * maxNotices, false},
	} {
		o := newOutbox()
		for n := range c.n {
			o.enqueue(&Frame{Kind: c.kind, low: c.low, key: fmt.Sprint(n), Data: fmt.Append(nil, n)})
		}
		if o.late != c.late {
			t.Errorf("%d of %s, low %t: late %t", c.n, c.kind, c.low, o.late)
		}
		if f, _ := o.pop(); c.low && string(f.Data) != fmt.Sprint(c.n-maxNotices) {
			t.Errorf("not the oldest were given up: %s is left", f.Data)
		}
	}
}

// TestGesturesOfManySessionsAreBounded checks that gestures, looks, sentences and moods of many sessions
// do not fill the outbox: the latest remain, and frames of other kinds are not dropped.
func TestGesturesOfManySessionsAreBounded(t *testing.T) {
	for _, kind := range []string{KindGesture, KindLook, KindSaid, KindMood} {
		o := newOutbox()
		o.enqueue(&Frame{Kind: KindState, key: "s"})
		for n := range 1000 {
			if o.enqueue(&Frame{Kind: kind, key: fmt.Sprint(n), Data: fmt.Append(nil, n)}); len(o.queue) > maxMoods+1 {
				t.Fatalf("%s: %d frames wait", kind, len(o.queue))
			}
		}
		if first, late := o.pop(); late || first == nil || first.Kind != KindState {
			t.Errorf("%s: the state is lost, and it is late: %t", kind, late)
		}
		if last := o.queue[len(o.queue)-1]; string(last.Data) != "999" {
			t.Errorf("%s: the latest is %s", kind, last.Data)
		}
	}
}

// TestSnapshotMakesNobodyLate checks that a snapshot with more than maxNotices notifications does not
// make the viewer late.
func TestSnapshotMakesNobodyLate(t *testing.T) {
	o := newOutbox()
	var all []*Frame
	for n := range 8 * maxNotices {
		all = append(all, &Frame{Kind: KindNotice, key: fmt.Sprint(n)})
	}
	o.subscribe(&Filter{}, all, all)
	for n := range maxNotices {
		o.enqueue(&Frame{Kind: KindNotice, key: fmt.Sprint("later ", n)})
	}
	if o.late || len(o.queue) != 9*maxNotices {
		t.Fatalf("late %t, %d wait", o.late, len(o.queue))
	}
	if o.enqueue(&Frame{Kind: KindNotice, key: "one more"}); !o.late {
		t.Error("what waits is not bounded")
	}
}

// TestSubscribingAgain checks that repeated calls of Subscribe neither queue a frame twice nor make the
// viewer late.
func TestSubscribingAgain(t *testing.T) {
	bus := event.NewBus()
	defer bus.Close()
	f := newFeedOf(bus, agent.NewBoard())
	none, notices := Filter{Kinds: []string{KindMood}}, Filter{Kinds: []string{KindNotice}}
	for n := range maxStored {
		f.handleEvent(event.Envelope{At: noon, Event: event.Notification{ID: fmt.Sprint(n), Text: "Tea.", Urgency: "normal"}})
	}
	v := f.Join(notices)
	feel := func() {
		f.handleEvent(event.Envelope{At: noon, Robot: robotA, Event: event.Mood{}})
	}
	for range 10 {
		v.Subscribe(none)
		feel()
		if v.Late() {
			t.Fatal("it is late by what it no longer wants")
		}
		v.Subscribe(notices)
		if waits := len(v.out.queue); v.Late() || waits != maxStored {
			t.Fatalf("%d frames wait of %d, and it is late: %t", waits, maxStored, v.Late())
		}
	}
	for n := range maxNotices {
		f.handleEvent(event.Envelope{At: noon, Event: event.Notification{ID: fmt.Sprint("later ", n), Text: "Tea.", Urgency: "normal"}})
	}
	if v.Late() {
		t.Error("what there is makes it late")
	}
	if f.handleEvent(event.Envelope{At: noon, Event: event.Notification{ID: "one more", Text: "Tea.", Urgency: "normal"}}); !v.Late() {
		t.Error("what waits is not bounded")
	}
}
