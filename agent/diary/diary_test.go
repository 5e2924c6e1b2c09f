package diary

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent/action"
	"perch/device"
	"perch/event"
)

const robot device.ID = "a0b1c2d3e4f5"

// disk is a database of maps.
type disk struct {
	entries map[string]Entry
	head    *Head
	broken  error
}

func newDisk() *disk { return &disk{entries: map[string]Entry{}} }

func (d *disk) PutSoon(key string, e Entry) { d.entries[key] = again(e) }
func (d *disk) DeleteSoon(key string)       { delete(d.entries, key) }
func (d *disk) Err() error                  { return nil }

func (d *disk) All() iter.Seq2[string, Entry] {
	return func(yield func(string, Entry) bool) {
		for _, k := range slices.Sorted(maps.Keys(d.entries)) {
			if !yield(k, d.entries[k]) {
				return
			}
		}
	}
}

func (d *disk) Newest(n int) iter.Seq2[string, Entry] {
	return func(yield func(string, Entry) bool) {
		keys := slices.Sorted(maps.Keys(d.entries))
		slices.Reverse(keys)
		for _, k := range keys[:min(n, len(keys))] {
			if !yield(k, d.entries[k]) {
				return
			}
		}
	}
}

func (d *disk) Get(string) (Head, bool, error) {
	if d.head == nil {
		return Head{}, false, nil
	}
	return again(*d.head), true, nil
}

func (d *disk) Put(_ string, h Head) error {
	if d.broken == nil {
		h = again(h)
		d.head = &h
	}
	return d.broken
}

// again is what of a value is read back from the disk.
func again[T any](v T) (w T) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &w)
	}
	if err != nil {
		panic(err)
	}
	return w
}

func seed(digit string) Key {
	k, err := NewKey(strings.Repeat(digit, 64))
	if err != nil {
		panic(err)
	}
	return k
}

func open(t *testing.T, on *disk, keep int) *Diary {
	t.Helper()
	d, err := Open(Options{Entries: on, Heads: on, Key: seed("a"), Keep: keep, Log: slog.New(slog.DiscardHandler),
		Who: func(r device.ID, _ string) string { return cmp.Or(string(r), "default") }})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// live has a diary keep n sentences, some at a time.
func live(t *testing.T, d *Diary, n int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		bus := event.NewBus()
		from := bus.ReadFrom(1)
		done := make(chan struct{})
		go func() { defer close(done); d.Run(t.Context(), from) }()
		for i := range n {
			bus.Publish(robot, "", event.Said{Text: fmt.Sprintf("sentence <%d> & more", i)})
			if i%7 == 6 {
				synctest.Wait()
				time.Sleep(every)
			}
		}
		bus.Close()
		<-done
	})
}

func verify(t *testing.T, d *Diary) Report {
	t.Helper()
	r, err := d.Verify()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhole(t *testing.T) {
	on := newDisk()
	for run := 1; run <= 3; run++ { // as after restarts
		d := open(t, on, 1000)
		live(t, d, 40)
		r := verify(t, d)
		if !r.Whole || r.Entries != 40*run || r.To != uint64(40*run) || r.From != 1 {
			t.Fatalf("after run %d: %+v", run, r)
		}
		if list := d.Newest(50); list[0].Seq != uint64(40*run) || len(list) != min(50, 40*run) || list[9].Seq != list[0].Seq-9 {
			t.Errorf("the newest are %d, from %d", len(list), list[0].Seq)
		}
	}
}

func TestOnlyItsTypesAreKept(t *testing.T) {
	on := newDisk()
	d := open(t, on, 1000)
	good := 0.5
	synctest.Test(t, func(t *testing.T) {
		bus := event.NewBus()
		bus.Publish(robot, "", event.Heard{Text: "what people say is not kept"})
		bus.Publish(robot, "", event.Said{Text: "hello"})
		bus.Publish("", "skin:1", event.Remembered{ID: "1", Type: "user", Name: "tea", Body: "likes tea"})
		bus.Publish(robot, "", event.Signed{Message: "m", Address: "a", Signature: "s"})
		bus.Publish(robot, "", event.SkillDone{Skill: "greet", Output: strings.Repeat("ä", 5000), Sentiment: &good})
		bus.Publish("", "skin:1", event.Validated{Errors: 1})
		bus.Publish("", "skin:1", event.LoadEnded{URI: "a.glb"})
		bus.Publish(robot, "", event.Mood{Dominant: "neutral"})
		bus.Close()
		d.Run(t.Context(), bus.ReadFrom(1))
	})
	var types []action.Type
	for _, e := range slices.Backward(d.Newest(100)) {
		types = append(types, e.Type)
		if len(e.Payload) > 3*2000 {
			t.Errorf("%s has %d bytes", e.Type, len(e.Payload))
		}
	}
	if !slices.Equal(types, Types()) {
		t.Errorf("%v are kept", types)
	}
	if r := verify(t, d); !r.Whole {
		t.Error(r)
	}
}

func TestBoundAndCutAtSignedPoints(t *testing.T) {
	on := newDisk()
	d := open(t, on, 100)
	live(t, d, 500)
	r := verify(t, d)
	if !r.Whole || r.Entries > 100 || r.Entries < 100-mostBatch || r.To != 500 || !d.head.Root.signed(d.Public()) {
		t.Fatalf("%+v", r)
	}
	if len(on.entries) > 100 {
		t.Errorf("%d entries are stored", len(on.entries))
	}
	d = open(t, on, 0) // keeps nothing any more
	live(t, d, 5)
	if r := verify(t, d); !r.Whole || r.Entries != 0 || r.To != 500 {
		t.Fatalf("%+v", r)
	}
	d = open(t, on, 100)
	live(t, d, 5)
	if r := verify(t, d); !r.Whole || r.Entries != 5 || r.From != 501 {
		t.Fatalf("%+v", r)
	}
}

// TestBroken changes a diary without the key in every way that there is, and finds it: at
// once, and after the diary has gone on.
func TestBroken(t *testing.T) {
	at := func(d *disk, seq uint64) Entry { return d.entries[key(seq)] }
	put := func(d *disk, e Entry) { d.entries[key(e.Seq)] = e }
	// rewritten is a chain that fits, from an entry on.
	rewritten := func(d *disk, from uint64) {
		e := at(d, from)
		e.Payload = json.RawMessage(`{"text":"another"}`)
		for {
			e.Hash = e.hash()
			put(d, e)
			next, more := d.entries[key(e.Seq+1)]
			if !more {
				return
			}
			next.Prev, e = e.Hash, next
		}
	}
	for name, breaks := range map[string]func(d *disk){
		"a payload changed":       func(d *disk) { e := at(d, 50); e.Payload = json.RawMessage(`{"text":"no"}`); put(d, e) },
		"a time changed":          func(d *disk) { e := at(d, 50); e.At = e.At.Add(1); put(d, e) },
		"a character changed":     func(d *disk) { e := at(d, 50); e.Character = "cook"; put(d, e) },
		"a change with its hash":  func(d *disk) { e := at(d, 50); e.Robot = ""; e.Hash = e.hash(); put(d, e) },
		"a rewritten chain":       func(d *disk) { rewritten(d, 50) },
		"one dropped":             func(d *disk) { delete(d.entries, key(50)) },
		"the oldest dropped":      func(d *disk) { delete(d.entries, key(d.head.Root.Seq+1)) },
		"the newest dropped":      func(d *disk) { d.head.Newest = d.head.Newest[:len(d.head.Newest)-1] },
		"two swapped":             func(d *disk) { a, b := at(d, 50), at(d, 51); d.entries[key(50)], d.entries[key(51)] = b, a },
		"two numbered anew":       func(d *disk) { a, b := at(d, 50), at(d, 51); a.Seq, b.Seq = 51, 50; put(d, a); put(d, b) },
		"one put in twice":        func(d *disk) { d.entries[key(50)+"0"] = at(d, 50) },
		"one added":               func(d *disk) { e := d.head.Newest[0]; e.Seq = d.head.Last.Seq + 1; e.Hash = e.hash(); put(d, e) },
		"one of the head changed": func(d *disk) { d.head.Newest[0].Payload = json.RawMessage(`{}`) },
		"the head gone":           func(d *disk) { d.head = nil },
		"all entries gone":        func(d *disk) { clear(d.entries) },
		"cut where not signed":    func(d *disk) { d.head.Root = Point{Seq: 50, Hash: at(d, 50).Hash} },
		"cut by somebody else": func(d *disk) {
			i := slices.IndexFunc(slices.Collect(maps.Values(d.entries)), func(e Entry) bool { return e.Signature != nil })
			e := slices.Collect(maps.Values(d.entries))[max(i, 0)]
			d.head.Root = Point{e.Seq, e.Hash, e.Signature}
		},
		"back to an earlier point": func(d *disk) {
			for seq := d.head.Last.Seq - 30; ; seq++ {
				if e := at(d, seq); e.Signature != nil {
					d.head.Last, d.head.Newest = Point{e.Seq, e.Hash, e.Signature}, nil
					maps.DeleteFunc(d.entries, func(_ string, o Entry) bool { return o.Seq > e.Seq })
					return
				}
			}
		},
		"signed with another key": func(d *disk) { *d.head = seed("b").signHead(*d.head) },
		"the address kept":        func(d *disk) { a := d.head.Address; *d.head = seed("b").signHead(*d.head); d.head.Address = a },
	} {
		t.Run(name, func(t *testing.T) {
			on := newDisk()
			live(t, open(t, on, 100), 143)
			if r := verify(t, open(t, on, 100)); !r.Whole {
				t.Fatalf("before: %+v", r)
			}
			breaks(on)
			h, found, _ := on.Get("")
			head := &h
			if !found {
				head = nil
			}
			r := Check(seed("a").Public(), head, byKey(on))
			if r.Whole || len(r.Faults) == 0 {
				t.Error("it is not found")
			}
			t.Log(r.Faults)
			live(t, open(t, on, 100), 3)
			if r := verify(t, open(t, on, 100)); r.Whole {
				t.Error("it is not found once the diary has gone on")
			}
		})
	}
}

func TestAFullDisk(t *testing.T) {
	on := newDisk()
	live(t, open(t, on, 100), 10)
	on.broken = errors.New("the disk is full")
	d := open(t, on, 100)
	live(t, d, 200)
	if d.Err() == nil {
		t.Error("it is not told")
	}
	on.broken = nil
	live(t, d, 10)
	if r := verify(t, d); !r.Whole || r.Entries != 20 || d.Err() != nil {
		t.Errorf("%+v, %v", r, d.Err())
	}
}

func TestSignature(t *testing.T) {
	k := seed("a")
	if s := k.Sign("hello"); !Signed(k.Public(), "hello", s) || Signed(k.Public(), "hell", s) || Signed(seed("b").Public(), "hello", s) ||
		Signed(k.Public(), "hello", "?") {
		t.Error("a signature is taken for another")
	}
	for _, wrong := range []string{"", "zz", strings.Repeat("a", 62)} {
		if _, err := NewKey(wrong); err == nil {
			t.Errorf("%q is a key", wrong)
		}
	}
}

func byKey(d *disk) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for k, e := range d.All() {
			if !yield(Placed(k, e)) {
				return
			}
		}
	}
}
