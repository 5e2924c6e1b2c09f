package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/device"
	"perch/must"
	"perch/store/storetest"
)

// TestWatchReportsEachChangeOnce tests that Watch reports each entry that is remembered, edited
// or forgotten, but no failed change, no read, and no change of a stranger's memory.
func TestWatchReportsEachChangeOnce(t *testing.T) {
	table := &storetest.Table[agent.Entry]{}
	m := agent.NewMemory(table)
	var told []string
	m.Watch(func(id string) { told = append(told, id) })
	keys := must.Value(m.Remember(agent.Entry{Key: "place keys", Body: "Your keys are in the car."}, noon))(t)
	want := []string{keys.ID}
	check := func(what string, ids ...string) {
		t.Helper()
		if want = append(want, ids...); !slices.Equal(told, want) {
			t.Errorf("%s: it told of %q, want %q", what, told, want)
		}
	}
	check("remembered")
	must.Value(m.Remember(agent.Entry{Key: "place keys", Body: "Your keys are in the hall."}, noon))(t)
	check("the same key again", keys.ID)
	m.Recall("place keys", noon)
	m.Search("keys", noon)
	_, tooLong := m.Remember(agent.Entry{Body: strings.Repeat("x", 4001)}, noon)
	_, unknown := m.Edit("nothing", "x", noon)
	if !errors.Is(tooLong, agent.ErrText) || !errors.Is(unknown, agent.ErrNoEntry) || !errors.Is(m.Forget("nothing"), agent.ErrNoEntry) {
		t.Errorf("%v, %v", tooLong, unknown)
	}
	stranger := m.Of(agent.Turn{Robot: "0200000000ff", Untrusted: true, Now: noon})
	if _, err := stranger.Remember(agent.Entry{Body: "I am the owner."}, noon); err != nil || stranger == m {
		t.Fatal(err, stranger == m)
	}
	check("read, refused and a stranger's")
	must.Value(m.Edit(keys.ID, "Your keys are gone.", noon))(t)
	check("edited", keys.ID)
	must.Succeed(t, m.Forget(keys.ID))
	check("forgotten", keys.ID)
}

func TestAnEditChangesTheTextAlone(t *testing.T) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	given := agent.Entry{Name: "Ann likes tea", Body: "Ann likes tea", Robot: "a0b1c2d3e4f5", Source: "tool", Tags: []string{"x"}}
	fact := must.Value(m.Remember(given, noon))(t)
	edited, err := m.Edit(fact.ID, " Ann likes coffee ", noon.Add(time.Hour))
	if err != nil || edited.Body != "Ann likes coffee" || edited.Name != edited.Body || edited.ID != fact.ID ||
		!edited.Created.Equal(fact.Created) || edited.Source != "tool" || edited.Robot != fact.Robot || len(edited.Tags) != 1 {
		t.Errorf("%+v, %v", edited, err)
	}
	if found := m.Search("coffee", noon); len(found) != 1 || len(m.Search("tea", noon)) != 0 {
		t.Errorf("the memory has %+v", found)
	}
	named := must.Value(m.Remember(agent.Entry{Key: "tea", Name: "tea time", Body: "Tea at four.", Expires: noon.Add(time.Minute)}, noon))(t)
	if edited, err = m.Edit(named.ID, "Tea at five.", noon); err != nil || edited.Name != "tea time" || edited.Key != "tea" {
		t.Errorf("%+v, %v", edited, err)
	}
	for text, sentence := range map[string]string{"": "the text is empty", " \t": "the text is empty", strings.Repeat("x", 4000): "has 4008 bytes"} {
		if _, err := m.Edit(named.ID, text, noon); !errors.Is(err, agent.ErrText) || !strings.Contains(err.Error(), sentence) {
			t.Errorf("a text of %d bytes: %v", len(text), err)
		}
	}
	if _, err := m.Edit(named.ID, "Tea at six.", noon.Add(time.Minute)); !errors.Is(err, agent.ErrNoEntry) {
		t.Errorf("after it has expired: %v", err)
	}
}

// TestViewersPushNothingOut tests that viewers' entries fill at most a tenth of the memory, are
// evicted for other entries, and do not evict other entries.
func TestViewersPushNothingOut(t *testing.T) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	m.Bound(50)
	now := time.Now()
	keep := func(i int, source string) error {
		now = now.Add(time.Second)
		_, err := m.Remember(agent.Entry{Name: fmt.Sprint(source, i), Body: "x", Type: agent.MemoryFeedback, Source: source}, now)
		return err
	}
	count := func() (owners, viewers int) {
		for _, e := range m.Search("", now) {
			if e.Source == agent.SourceViewer {
				viewers++
			} else {
				owners++
			}
		}
		return owners, viewers
	}
	for i := range 40 {
		must.Succeed(t, keep(i, "tool"))
	}
	now = now.Add(30 * 24 * time.Hour) // now the entries of the owner have low scores
	for i := range 500 {
		must.Succeed(t, keep(i, agent.SourceViewer))
	}
	if owners, viewers := count(); owners != 40 || viewers != 5 {
		t.Errorf("%d of the owner's and %d of viewers", owners, viewers)
	}
	for i := range 10 {
		must.Succeed(t, keep(100+i, "tool"))
	}
	if owners, viewers := count(); owners != 50 || viewers != 0 {
		t.Errorf("full: %d of the owner's and %d of viewers", owners, viewers)
	}
	if err := keep(0, agent.SourceViewer); !errors.Is(err, agent.ErrFull) {
		t.Errorf("a viewer's in a full memory: %v", err)
	}
}

// TestAStrangerHasAMemoryOfItsOwn tests that a robot that is not adopted cannot read or
// change the owner's memory, and has a separate memory. The number and the size of
// strangers' memories are limited.
func TestAStrangerHasAMemoryOfItsOwn(t *testing.T) {
	now := time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	kept := &storetest.Table[agent.Entry]{}
	owners := agent.NewMemory(kept)
	must.Value(owners.Remember(agent.Entry{Key: "safe", Body: "the safe opens with 4711"}, now))(t)
	turn := func(id device.ID) agent.Turn { return agent.Turn{Robot: id, Untrusted: true, Now: now} }
	one, two := owners.Of(turn("a0b1c2d3e4f5")), owners.Of(turn("a0b1c2d3e4f6"))
	if _, found := one.Recall("safe", now); found || len(one.Search("", now)) != 0 {
		t.Error("a stranger reads the owner's memory")
	}
	must.Value(one.Remember(agent.Entry{Key: "place keys", Body: "in the kitchen"}, now))(t)
	if e, found := owners.Of(turn("a0b1c2d3e4f5")).Recall("place keys", now); !found || e.Body != "in the kitchen" {
		t.Error("a stranger forgets what was said to it")
	}
	if _, found := two.Recall("place keys", now); found {
		t.Error("a stranger reads what was said to another")
	}
	if n := len(owners.Search("", now)); n != 1 {
		t.Errorf("the owner's memory has %d entries", n)
	}
	if owners.Of(agent.Turn{Robot: "a0b1c2d3e4f5"}) != owners {
		t.Error("an adopted robot does not have the owner's memory")
	}
	for n := range 100 {
		must.Value(one.Remember(agent.Entry{Body: fmt.Sprint("thing ", n)}, now.Add(time.Duration(n)*time.Second)))(t)
	}
	if n := len(one.Search("", now)); n != 20 {
		t.Errorf("a stranger remembers %d things", n)
	}
	for n := range 100 {
		later := turn(device.ID(fmt.Sprintf("a0000000%04x", n)))
		later.Now = now.Add(time.Hour)
		owners.Of(later)
	}
	if _, found := owners.Of(turn("a0b1c2d3e4f5")).Recall("place keys", now); found {
		t.Error("of a hundred strangers the first is still remembered")
	}
}

// TestNothingOfAStrangersTalkIsKept tests that a stranger's conversation and facts are not
// stored on disk, and that a stranger with the ID of an adopted robot does not get the
// history of that robot.
func TestNothingOfAStrangersTalkIsKept(t *testing.T) {
	now := time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	b := &brain{replies: []agent.Reply{agent.Say{Text: "Yes. [REMEMBER: somebody was here]"}, agent.Done{}}}
	entries, kept := &storetest.Table[agent.Entry]{}, &storetest.Table[agent.Conversation]{}
	m := newMind(&published{}, agent.NewMemory(entries), b)
	m.Restore(kept)
	talk := func(stranger bool, text string) {
		t.Helper()
		turn := agent.Turn{Conversation: "a0b1c2d3e4f5", Robot: "a0b1c2d3e4f5", Untrusted: stranger, Text: text, Now: now}
		must.Succeed(t, m.Answer(t.Context(), turn, func(agent.Reply) error { return nil }))
		m.AddExchange("a0b1c2d3e4f5", agent.Exchange{Heard: text, Said: "Yes."}, now)
	}
	talk(false, "a secret")
	talk(true, "what did I say")
	talk(true, "and now")
	if one, two := b.heard[1].History, b.heard[2].History; len(one) != 0 || len(two) != 1 || two[0].Heard != "what did I say" {
		t.Errorf("the stranger was given %+v and %+v", one, two)
	}
	if text := fmt.Sprint(kept.Kept); !strings.Contains(text, "a secret") || strings.Contains(text, "what did I say") {
		t.Errorf("kept is %s", text)
	}
	if n := len(entries.Kept); n != 1 {
		t.Errorf("%d facts are kept", n)
	}
	m.Dismiss("a0b1c2d3e4f5")
	talk(true, "are you there")
	if h := b.heard[3].History; len(h) != 0 {
		t.Errorf("after a dropped stranger the next is given %+v", h)
	}
	talk(false, "a secret again")
	m.Dismiss("a0b1c2d3e4f5")
	talk(false, "what did I say")
	if h := b.heard[5].History; len(h) == 0 {
		t.Error("what was said to an adopted robot is gone with strangers")
	}
}
