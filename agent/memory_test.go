package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/must"
	"perch/store/storetest"
)

// TestMemoryTellsOfEachChangeOnce: of what is remembered, edited and forgotten by
// whomever, and of nothing that failed, that was only read, or that a stranger said.
func TestMemoryTellsOfEachChangeOnce(t *testing.T) {
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
	if !errors.Is(tooLong, agent.ErrTooMuch) || !errors.Is(unknown, agent.ErrForgotten) || !errors.Is(m.Forget("nothing"), agent.ErrForgotten) {
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

// TestAnEditChangesTheTextAlone.
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
	for _, text := range []string{"", " \t", strings.Repeat("x", 4000)} {
		if _, err := m.Edit(named.ID, text, noon); !errors.Is(err, agent.ErrTooMuch) {
			t.Errorf("a text of %d bytes: %v", len(text), err)
		}
	}
	if _, err := m.Edit(named.ID, "Tea at six.", noon.Add(time.Minute)); !errors.Is(err, agent.ErrForgotten) {
		t.Errorf("after it has expired: %v", err)
	}
}

// TestViewersPushNothingOut: what a program reports fills a tenth of the memory, gives way
// to what is the owner's, and takes the place of none of it.
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
	now = now.Add(30 * 24 * time.Hour) // when all of it ranks low
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
