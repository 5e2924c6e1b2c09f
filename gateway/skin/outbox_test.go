package skin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perch/device"
)

// drawFrame is any frame of a few sessions.
func drawFrame(t *rapid.T, n int) *frame {
	session := rapid.SampledFrom([]string{"s1", "s2", "s3"}).Draw(t, "session")
	f := &frame{session: session, data: fmt.Append(nil, n)}
	switch f.kind = rapid.SampledFrom(append(rfcKinds(), kindStep, "")).Draw(t, "kind"); f.kind {
	case kindState:
		f.key = "s " + session
	case kindFace:
		f.key = "f " + session
	case kindTool:
		f.key = fmt.Sprint("t ", session, rapid.IntRange(0, 200).Draw(t, "tool"))
	case kindNotice:
		f.key, f.low = fmt.Sprint("n ", rapid.IntRange(0, 200).Draw(t, "id")), rapid.Bool().Draw(t, "low")
	case kindStep:
		f.key = fmt.Sprint("c ", rapid.IntRange(0, 200).Draw(t, "id"))
	default:
		f.key = rapid.SampledFrom([]string{"pong", "error"}).Draw(t, "answer")
	}
	return f
}

// TestWhatWaitsForASlowSkin: what is taken at last is in the order it came, and
// the newest of every key is among it, but for notifications of low urgency
// and what became of others; or else the skin is late.
func TestWhatWaitsForASlowSkin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOutbox()
		newest := map[string]*frame{}
		order := map[*frame]int{}
		for n := range rapid.IntRange(0, 600).Draw(t, "frames") {
			f := drawFrame(t, n)
			newest[f.key], order[f] = f, n
			o.put(f)
			if len(o.waiting) > crowded+3*2+mostTools+mostNotices+2 {
				t.Fatalf("%d frames wait", len(o.waiting))
			}
		}
		var taken []*frame
		late := false
		for {
			f, tooLate := o.take()
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
		if !slices.IsSortedFunc(taken, func(a, b *frame) int { return order[a] - order[b] }) {
			t.Fatal("the order is another")
		}
		for key, f := range newest {
			if !f.low && f.kind != kindStep && !slices.Contains(taken, f) {
				t.Fatalf("the newest of %s is lost", key)
			}
		}
	})
}

// TestFewFramesAreAllKept, stale or not.
func TestFewFramesAreAllKept(t *testing.T) {
	o := newOutbox()
	for range crowded {
		o.put(&frame{kind: kindState, key: "s"})
	}
	for n := range crowded {
		if f, late := o.take(); f == nil || late {
			t.Fatalf("%d were kept", n)
		}
	}
	for n := range 10 * crowded {
		o.put(&frame{kind: kindState, key: "s", data: fmt.Append(nil, n)})
	}
	for n := 0; ; n++ {
		f, late := o.take()
		if late || n > crowded {
			t.Fatal("it is late")
		}
		if f == nil {
			break
		}
		if next, _ := o.take(); next == nil && string(f.data) != "319" {
			t.Errorf("the last is %s", f.data)
		} else if next != nil {
			o.waiting = append([]*frame{next}, o.waiting...)
		}
	}
}

// TestALateSkin: too many notifications that may not be lost, or tools.
func TestALateSkin(t *testing.T) {
	for _, c := range []struct {
		kind string
		low  bool
		n    int
		late bool
	}{
		{kindNotice, false, mostNotices, false}, {kindNotice, false, mostNotices + 1, true}, {kindNotice, true, 10 * mostNotices, false},
		{kindTool, false, mostTools, false}, {kindTool, false, mostTools + 1, true}, {kindStep, false, 10 * mostNotices, false},
	} {
		o := newOutbox()
		for n := range c.n {
			o.put(&frame{kind: c.kind, low: c.low, key: fmt.Sprint(n), data: fmt.Append(nil, n)})
		}
		if o.late != c.late {
			t.Errorf("%d of %s, low %t: late %t", c.n, c.kind, c.low, o.late)
		}
		if f, _ := o.take(); c.low && string(f.data) != fmt.Sprint(c.n-mostNotices) {
			t.Errorf("not the oldest were given up: %s is left", f.data)
		}
	}
}

func FuzzCommand(f *testing.F) {
	for _, seed := range []string{`{"type":"ping"}`, `{"type":"ack","id":"x"}`,
		`{"type":"subscribe","events":["emotion","x"],"states":"all","session_ids":["s","robot:a0b1c2d3e4f5"],"vocabulary":"vrm"}`, `[`} {
		f.Add([]byte(seed))
	}
	words := stockWords()
	f.Fuzz(func(t *testing.T, text []byte) {
		c, bad := parseCommand(text, "rfc", words, device.ParseID)
		if c == nil && bad == nil {
			t.Fatal("nothing comes of it, and nothing is wrong")
		}
		if bad != nil {
			made := newErrorFrame(noon, bad)
			if valid(t, "event", made.data); len(made.data) > 4000 {
				t.Errorf("%d bytes", len(made.data))
			}
		}
		if s, is := c.(subscribe); is && (len(s.filter.kinds) > 5 || len(s.filter.sessions) > mostSessions || !words.Knows(s.filter.words)) {
			t.Errorf("%+v", s)
		}
		// What the schema allows is obeyed.
		if bad != nil && validate("command", text) == nil && !strings.Contains(string(text), "vocabulary") &&
			!strings.Contains(string(text), "robot:") &&
			len(text) < 50 {
			t.Errorf("%s: %+v", text, bad)
		}
	})
}
