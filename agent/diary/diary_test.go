package diary

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
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
	"perch/must"
	"perch/store/storetest"
)

const robot device.ID = "a0b1c2d3e4f5"

// disk is the storage of a diary, which remains when the diary is opened again.
type disk struct {
	entries storetest.Table[Entry]
	heads   storetest.Table[Head]
	keyed   bool // whether a diary was opened before, so that the key is not new
}

// head returns a copy of the stored head, or nil if none is stored.
func (d *disk) head(t *testing.T) *Head {
	t.Helper()
	h, found, _ := d.heads.Get(headKey)
	if !found {
		return nil
	}
	text := must.Value(json.Marshal(h))(t)
	h = Head{}
	must.Succeed(t, json.Unmarshal(text, &h))
	return &h
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
	return openAs(t, on, "a", keep)
}

// openAs opens a diary with the key seed(key). Options.Begins is true at the first call for on.
func openAs(t *testing.T, on *disk, key string, keep int) *Diary {
	t.Helper()
	begins := !on.keyed
	on.keyed = true
	return must.Value(Open(Options{Entries: &on.entries, Heads: &on.heads, Key: seed(key), Begins: begins, Keep: keep,
		Log: slog.New(slog.DiscardHandler), Who: func(r device.ID, _ string) string { return cmp.Or(string(r), "default") }}))(t)
}

// running runs a diary with virtual time while do publishes events, and until they are stored.
func running(t *testing.T, d *Diary, do func(bus *event.Bus)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		bus := event.NewBus()
		from := bus.ReadFrom(1)
		done := make(chan struct{})
		go func() { defer close(done); d.Run(t.Context(), from) }()
		do(bus)
		bus.Close()
		<-done
	})
}

// live has a diary record n sentences, seven in each batch.
func live(t *testing.T, d *Diary, n int) {
	t.Helper()
	running(t, d, func(bus *event.Bus) {
		for i := range n {
			bus.Publish(robot, "", event.Said{Text: fmt.Sprintf("sentence <%d> & more", i)})
			if i%7 == 6 {
				synctest.Wait()
				time.Sleep(2 * writeDelay) // longer than writeDelay, so that the diary writes first
			}
		}
	})
}

func verify(t *testing.T, d *Diary) Report {
	t.Helper()
	return must.Value(d.Verify())(t)
}

func TestADiaryOfSeveralRunsIsWhole(t *testing.T) {
	on := &disk{}
	for run := 1; run <= 3; run++ { // each run opens the diary again
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

func TestOnlyItsTypesAreRecorded(t *testing.T) {
	on := &disk{}
	d := open(t, on, 1000)
	good := 0.5
	running(t, d, func(bus *event.Bus) {
		bus.Publish(robot, "", event.Heard{Text: "what people say is not kept"})
		bus.Publish(robot, "", event.Said{Text: "hello"})
		bus.Publish("", "skin:1", event.Remembered{ID: "1", Type: "user", Name: "tea", Body: "likes tea"})
		bus.Publish(robot, "", event.Signed{Message: "m", Address: "a", Signature: "s"})
		bus.Publish(robot, "", event.SkillDone{Skill: "greet", Output: strings.Repeat("ä", 5000), Sentiment: &good})
		bus.Publish("", "skin:1", event.Validated{Errors: 1})
		bus.Publish("", "skin:1", event.LoadEnded{URI: "a.glb"})
		bus.Publish(robot, "", event.Mood{Dominant: "neutral"})
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
	on := &disk{}
	d := open(t, on, 100)
	live(t, d, 500)
	r := verify(t, d)
	if !r.Whole || r.Entries > 100 || r.Entries < 100-maxBatch || r.To != 500 || !d.head.Root.isSigned(d.Public()) {
		t.Fatalf("%+v", r)
	}
	if n := len(on.entries.Kept); n > 100 {
		t.Errorf("%d entries are stored", n)
	}
	d = open(t, on, 0)
	live(t, d, 5)
	if text, err := json.Marshal([]any{on.heads.Kept, on.entries.Kept}); err != nil || strings.Contains(string(text), "sentence") {
		t.Errorf("what it does not keep is stored: %.300s, %v", text, err)
	}
	if r := verify(t, d); !r.Whole || r.Entries != 0 || r.To != 500 {
		t.Fatalf("%+v", r)
	}
	d = open(t, on, 100)
	live(t, d, 5)
	if r := verify(t, d); !r.Whole || r.Entries != 5 || r.From != 501 {
		t.Fatalf("%+v", r)
	}
}

// TestManipulationIsDetected tests that Check finds many kinds of changes that were made without the
// key, at once and after the diary has recorded further entries.
func TestManipulationIsDetected(t *testing.T) {
	type table map[string]Entry
	at := func(d table, seq uint64) Entry { return d[key(seq)] }
	put := func(d table, e Entry) { d[key(e.Seq)] = e }
	// rewritten changes an entry, and the hashes of this and all later entries of the table.
	rewritten := func(d table, from uint64) {
		e := at(d, from)
		e.Payload = json.RawMessage(`{"text":"another"}`)
		for {
			e.Hash = e.hash()
			put(d, e)
			next, more := d[key(e.Seq+1)]
			if !more {
				return
			}
			next.Prev, e = e.Hash, next
		}
	}
	for name, breaks := range map[string]func(d table, h *Head){
		"a payload changed":       func(d table, h *Head) { e := at(d, 50); e.Payload = json.RawMessage(`{"text":"no"}`); put(d, e) },
		"a time changed":          func(d table, h *Head) { e := at(d, 50); e.At = e.At.Add(1); put(d, e) },
		"a character changed":     func(d table, h *Head) { e := at(d, 50); e.Character = "cook"; put(d, e) },
		"a change with its hash":  func(d table, h *Head) { e := at(d, 50); e.Robot = ""; e.Hash = e.hash(); put(d, e) },
		"a rewritten chain":       func(d table, h *Head) { rewritten(d, 50) },
		"one dropped":             func(d table, h *Head) { delete(d, key(50)) },
		"the oldest dropped":      func(d table, h *Head) { delete(d, key(h.Root.Seq+1)) },
		"the newest dropped":      func(d table, h *Head) { h.Newest = h.Newest[:len(h.Newest)-1] },
		"two swapped":             func(d table, h *Head) { a, b := at(d, 50), at(d, 51); d[key(50)], d[key(51)] = b, a },
		"two numbered anew":       func(d table, h *Head) { a, b := at(d, 50), at(d, 51); a.Seq, b.Seq = 51, 50; put(d, a); put(d, b) },
		"one put in twice":        func(d table, h *Head) { d[key(50)+"0"] = at(d, 50) },
		"one added":               func(d table, h *Head) { e := h.Newest[0]; e.Seq = h.Last.Seq + 1; e.Hash = e.hash(); put(d, e) },
		"one of the head changed": func(d table, h *Head) { h.Newest[0].Payload = json.RawMessage(`{}`) },
		"the head gone":           func(d table, h *Head) { *h = Head{} },
		"all of it gone":          func(d table, h *Head) { *h = Head{}; clear(d) },
		"all entries gone":        func(d table, h *Head) { clear(d) },
		"cut where not signed":    func(d table, h *Head) { h.Root = Point{Seq: 50, Hash: at(d, 50).Hash} },
		"cut by somebody else": func(d table, h *Head) {
			i := slices.IndexFunc(slices.Collect(maps.Values(d)), func(e Entry) bool { return e.Signature != nil })
			e := slices.Collect(maps.Values(d))[max(i, 0)]
			h.Root = Point{e.Seq, e.Hash, e.Signature}
		},
		"back to an earlier point": func(d table, h *Head) {
			for seq := h.Last.Seq - 30; ; seq++ {
				if e := at(d, seq); e.Signature != nil {
					h.Last, h.Newest = Point{e.Seq, e.Hash, e.Signature}, nil
					maps.DeleteFunc(d, func(_ string, o Entry) bool { return o.Seq > e.Seq })
					return
				}
			}
		},
		"signed with another key": func(d table, h *Head) { *h = seed("b").signHead(*h) },
		"the address kept":        func(d table, h *Head) { a := h.Address; *h = seed("b").signHead(*h); h.Address = a },
	} {
		t.Run(name, func(t *testing.T) {
			on := &disk{}
			live(t, open(t, on, 100), 143)
			if r := verify(t, open(t, on, 100)); !r.Whole {
				t.Fatalf("before: %+v", r)
			}
			head := on.head(t)
			if breaks(on.entries.Kept, head); head.Last.Seq == 0 {
				head = nil
				clear(on.heads.Kept)
			} else {
				on.heads.Kept[headKey] = *head
			}
			r := Check(seed("a").Public(), head, (&Diary{o: Options{Entries: &on.entries}}).table())
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

// TestADiaryOfAnotherAppliance tests that a diary restored from another appliance's backup has no
// faults, that its report names the other appliance before and after further entries, and that
// changes of its entries are found.
func TestADiaryOfAnotherAppliance(t *testing.T) {
	on := &disk{}
	live(t, open(t, on, 100), 43)
	here := func(digit string) *Diary { return openAs(t, on, digit, 100) }
	a, b := seed("a").Address(), seed("b").Address()
	of := func(d *Diary, to uint64, foreign ...Foreign) {
		t.Helper()
		if r := verify(t, d); r.Whole || len(r.Faults) > 0 || !slices.Equal(r.Foreign, foreign) || r.To != to || r.Fits() || !r.Fits(a, b) {
			t.Errorf("%+v", r)
		}
	}
	d := here("b")
	of(d, 43, Foreign{a, 43})
	live(t, d, 20)
	of(d, 63, Foreign{a, 43})
	d = here("c") // restored on a third appliance
	of(d, 63, Foreign{a, 43}, Foreign{b, 63})
	live(t, d, 20)
	of(here("c"), 83, Foreign{a, 43}, Foreign{b, 63})
	for _, seq := range []uint64{10, 50} {
		before := on.entries.Kept[key(seq)]
		e := before
		e.Payload = json.RawMessage(`{"text":"another"}`)
		on.entries.Kept[key(seq)] = e
		if r := verify(t, here("c")); len(r.Faults) == 0 || r.Fits(a, b) {
			t.Errorf("entry %d was changed: %+v", seq, r)
		}
		on.entries.Kept[key(seq)] = before
	}
	whose := on.head(t)
	on.heads.Kept[headKey] = *on.head(t)
	on.heads.Kept[headKey].Before[0].Address = b
	if r := verify(t, here("c")); r.Fits(a, b) {
		t.Errorf("whose it was is changed: %+v", r)
	}
	on.heads.Kept[headKey] = *whose
	live(t, here("c"), 150) // now all entries of the other appliances were deleted
	if r := verify(t, here("c")); !r.Whole || len(r.Foreign) > 0 {
		t.Errorf("%+v", r)
	}
	if d := here("a"); !verify(t, d).Fits(seed("c").Address()) {
		t.Error("with the key of the first: ", verify(t, d))
	}
}

// TestADiaryOfAnotherApplianceIsCut tests a diary of another appliance that has more entries than
// Options.Keep. It is cut before this appliance has recorded any entry.
func TestADiaryOfAnotherApplianceIsCut(t *testing.T) {
	for _, keep := range []int{20, 0} {
		on := &disk{}
		live(t, open(t, on, 100), 43)
		d := openAs(t, on, "b", keep)
		live(t, d, 0)
		if r := verify(t, d); !r.Fits(seed("a").Address()) || r.Entries > keep || r.To != 43 {
			t.Errorf("%d are kept: %+v", keep, r)
		}
		live(t, d, 5)
		if r := verify(t, d); !r.Fits(seed("a").Address()) || r.Entries > keep {
			t.Errorf("%d are kept, and five more: %+v", keep, r)
		}
	}
}

// TestViewersPushOutNothing tests that viewers' entries fill at most a tenth of the diary, also
// after restarts, and that new ones are accepted after older ones were deleted.
func TestViewersPushOutNothing(t *testing.T) {
	on := &disk{}
	live(t, open(t, on, 100), 60)
	report := func(n int) (d *Diary) {
		d = open(t, on, 100)
		running(t, d, func(bus *event.Bus) {
			for range n {
				bus.Publish("", "vtb_x", event.Said{Text: "mine", By: event.ByViewer})
			}
		})
		return d
	}
	counted := func(d *Diary) (own, reported int) {
		for _, e := range d.Newest(1000) {
			if e.isReported() {
				reported++
			} else {
				own++
			}
		}
		return own, reported
	}
	for range 3 {
		d := report(70)
		if own, reported := counted(d); own != 60 || reported != 10 || !verify(t, d).Whole {
			t.Errorf("%d own, %d of viewers: %+v", own, reported, verify(t, d))
		}
	}
	live(t, open(t, on, 100), 200)
	d := report(5)
	if own, reported := counted(d); own < 80 || reported != 5 || !verify(t, d).Whole {
		t.Errorf("later %d own, %d of viewers", own, reported)
	}
}

func TestAFullDiskIsReported(t *testing.T) {
	on := &disk{}
	live(t, open(t, on, 100), 10)
	on.heads.RefuseDurable(errors.New("the disk is full"))
	d := open(t, on, 100)
	live(t, d, 200)
	if d.Err() == nil {
		t.Error("it is not told")
	}
	on.heads.RefuseDurable(nil)
	live(t, d, 10)
	if r := verify(t, d); !r.Whole || r.Entries != 20 || d.Err() != nil {
		t.Errorf("%+v, %v", r, d.Err())
	}
}

// TestARefusedBatchIsWrittenLater tests that a batch whose write has failed is written again.
func TestARefusedBatchIsWrittenLater(t *testing.T) {
	on := &disk{}
	d := open(t, on, 100)
	running(t, d, func(bus *event.Bus) {
		on.heads.RefuseDurable(errors.New("the disk is full"))
		bus.Publish(robot, "", event.Said{Text: "hello"})
		time.Sleep(2 * writeDelay)
		synctest.Wait()
		if d.Err() == nil || len(d.Newest(1)) > 0 {
			t.Errorf("before: %v, %v", d.Newest(1), d.Err())
		}
		on.heads.RefuseDurable(nil)
		time.Sleep(2 * writeDelay)
		synctest.Wait()
		if d.Err() != nil || len(d.Newest(1)) != 1 {
			t.Errorf("after: %v, %v", d.Newest(1), d.Err())
		}
	})
	if r := verify(t, d); !r.Whole || r.Entries != 1 {
		t.Errorf("%+v", r)
	}
}

// TestReadingWhileTheDiaryIsVerified tests that Err and Newest do not wait for d.changing.
func TestReadingWhileTheDiaryIsVerified(t *testing.T) {
	d := open(t, &disk{}, 100)
	d.changing.Lock()
	defer d.changing.Unlock()
	if d.Err() != nil || len(d.Newest(1)) != 0 {
		t.Error(d.Newest(1), d.Err())
	}
}

// signed reports whether signature, in base64, is a valid signature of a message by the key
// public.
func signed(public ed25519.PublicKey, message, signature string) bool {
	raw, err := base64.StdEncoding.DecodeString(signature)
	return err == nil && ed25519.Verify(public, []byte(messagePrefix+message), raw)
}

func TestSignaturesAndKeys(t *testing.T) {
	k := seed("a")
	if s := k.Sign("hello"); !signed(k.Public(), "hello", s) || signed(k.Public(), "hell", s) || signed(seed("b").Public(), "hello", s) ||
		signed(k.Public(), "hello", "?") {
		t.Error("a signature is taken for another")
	}
	for _, wrong := range []string{"", "zz", strings.Repeat("a", 62)} {
		if _, err := NewKey(wrong); err == nil {
			t.Errorf("%q is a key", wrong)
		}
	}
}
