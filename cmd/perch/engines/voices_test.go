package engines

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"perch/event"
	"perch/must"
	"perch/voice"
)

// lister is a synthesizer that lists its voices.
type lister struct {
	*scripted
	list []voice.Named
}

func (l *lister) Check(context.Context) error                   { return l.err }
func (l *lister) Voices(context.Context) ([]voice.Named, error) { return l.list, l.err }

// TestVoicesAreListed: an engine lists its voices when it is checked, and not when it speaks. The list remains while
// the engine is unreachable, and for the engine that replaces it. A change is published.
func TestVoicesAreListed(t *testing.T) {
	var changes int
	newSet := func(l *lister) (*Set, *Engine) {
		e := &Set{publish: func(ev event.Event) {
			if ev == (event.Changed{What: "voices"}) {
				changes++
			}
		}}
		n := e.add("synthesizer", "scripted", "192.168.1.9", slog.New(slog.DiscardHandler))
		e.setHooks(n, l)
		n.Synthesizer = l
		return e, n
	}
	fake := &lister{&scripted{err: voice.ErrUnavailable}, []voice.Named{{Name: "joe"}, {Name: "joe"}}}
	e, n := newSet(fake)
	want := func(when string, e *Set, known bool, published int, names ...string) {
		t.Helper()
		list, isKnown := e.Voices()
		var got []string
		for _, v := range list {
			got = append(got, v.Name)
		}
		if !slices.Equal(got, names) || isKnown != known || changes != published {
			t.Errorf("%s: %q, known: %t, published %d times", when, got, isKnown, changes)
		}
	}
	if n.quickCheck(t.Context()) == nil {
		t.Error("it is away, and passes its check")
	}
	want("while it is away", e, false, 0)
	fake.err = nil
	must.Succeed(t, n.quickCheck(t.Context()))
	want("once it is there", e, true, 1, "joe")
	must.Succeed(t, n.quickCheck(t.Context()))
	want("unchanged", e, true, 1, "joe")
	must.Succeed(t, n.Synthesizer.Synthesize(t.Context(), "hello", voice.Options{}, func([]int16) error { return nil }))
	fake.list = append(fake.list, voice.Named{Name: "ann"})
	fake.err = voice.ErrUnavailable
	if n.quickCheck(t.Context()) == nil {
		t.Error("it is away, and passes its check")
	}
	want("away again", e, true, 1, "joe")
	next, _ := newSet(fake)
	next.keepVoices(e)
	want("in the next configuration", next, true, 1, "joe")
	fake.err = nil
	must.Succeed(t, n.quickCheck(t.Context()))
	want("back", e, true, 2, "joe", "ann")
	old, _ := newSet(fake)
	old.keepVoices(next)
	e.keepVoices(&Set{All: []*Engine{old.All[0], n}})
	want("shared by the next configuration", e, true, 2, "joe", "ann")
	without := &Set{}
	silent := without.add("synthesizer", "scripted", "", slog.New(slog.DiscardHandler))
	without.setHooks(silent, fake.scripted)
	silent.Synthesizer = fake.scripted
	want("an engine that lists none", without, true, 2)
}
