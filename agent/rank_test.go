package agent_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/store/storetest"
)

// TestSalienceAndScore are the numbers of the types, tags and the half-life.
func TestSalienceAndScore(t *testing.T) {
	for _, c := range []struct {
		e    agent.Entry
		want float64
	}{
		{agent.Entry{Type: agent.MemoryFeedback}, 0.8}, {agent.Entry{Type: agent.MemoryUser}, 0.7},
		{agent.Entry{Type: agent.MemoryProject}, 0.6}, {agent.Entry{Type: agent.MemoryReference}, 0.5},
		{agent.Entry{Type: agent.MemoryReference, Tags: []string{"a", "b"}}, 0.6},
		{agent.Entry{Type: agent.MemoryFeedback, Tags: []string{"a", "b", "c", "d", "e", "f"}}, 1},
		{agent.Entry{Type: agent.MemoryReference, Tags: []string{"a", "b", "c", "d", "e", "f"}}, 0.7},
		{agent.Entry{Type: agent.MemoryReference, Important: true}, 1},
	} {
		c.e.Created = noon
		if got := c.e.Salience(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: salience %g, want %g", c.e, got, c.want)
		}
		if got := c.e.Score(noon.Add(7 * 24 * time.Hour)); math.Abs(got-c.want*math.Exp(-0.693)) > 1e-9 {
			t.Errorf("%+v: after a week %g", c.e, got)
		}
	}
}

// TestAQueryIsRanked by what entries are and how old they are; all tags and words count.
func TestAQueryIsRanked(t *testing.T) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	for _, e := range []agent.Entry{
		{Body: "where the lamp is", Type: agent.MemoryReference, Tags: []string{"lamp", "#Desk"}},
		{Body: "no bright lamp", Type: agent.MemoryFeedback, Tags: []string{"lamp"}},
		{Body: "Ann likes the lamp"},
		{Body: "gone soon", Type: agent.MemoryFeedback, Expires: noon.Add(time.Hour)},
	} {
		if _, err := m.Remember(e, noon); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		q    agent.Query
		want string
	}{
		{agent.Query{}, "no bright lamp, Ann likes the lamp, where the lamp is"},
		{agent.Query{N: 1}, "no bright lamp"},
		{agent.Query{Type: agent.MemoryUser}, "Ann likes the lamp"},
		{agent.Query{Tags: []string{"lamp"}}, "no bright lamp, where the lamp is"},
		{agent.Query{Tags: []string{"LAMP", "desk"}}, "where the lamp is"},
		{agent.Query{Text: "LAMP ann"}, "Ann likes the lamp"},
	} {
		found, err := m.Query(c.q, noon.Add(2*time.Hour))
		var got []string
		for _, r := range found {
			got = append(got, r.Body)
		}
		if err != nil || strings.Join(got, ", ") != c.want {
			t.Errorf("%+v: %q, %v", c.q, got, err)
		}
	}
	if _, err := m.Query(agent.Query{Type: "fact"}, noon); !errors.Is(err, agent.ErrEntry) {
		t.Errorf("an unknown type: %v", err)
	}
	if s := m.Stats(noon); s.Entries != 4 || s.Types[agent.MemoryFeedback] != 2 || s.Tags["lamp"] != 2 || s.Most != 2000 {
		t.Errorf("stats: %+v", s)
	}
}

// TestWhatCannotBeRememberedSo is refused by a sentence.
func TestWhatCannotBeRememberedSo(t *testing.T) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	for sentence, e := range map[string]agent.Entry{
		"ten years":    {Expires: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
		"a tag is":     {Tags: []string{"two words"}},
		"at most 8":    {Tags: strings.Fields("a b c d e f g h i")},
		"of at most 4": {Tags: []string{strings.Repeat("x", 41)}},
	} {
		e.Body = "x"
		if _, err := m.Remember(e, noon); !errors.Is(err, agent.ErrEntry) || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	if found := m.Search("", noon); len(found) > 0 {
		t.Errorf("it remembers %+v", found)
	}
}

// TestAFullMemoryForgetsByRank: first what has expired, then the lowest score.
func TestAFullMemoryForgetsByRank(t *testing.T) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	m.Bound(3)
	for i, e := range []agent.Entry{
		{Body: "kept", Important: true},
		{Body: "expired", Type: agent.MemoryFeedback, Expires: noon.Add(90 * time.Minute)},
		{Body: "reference", Type: agent.MemoryReference},
		{Body: "user"}, {Body: "feedback", Type: agent.MemoryFeedback},
	} {
		if _, err := m.Remember(e, noon.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		var bodies []string
		for _, e := range m.Search("", noon.Add(time.Duration(i)*time.Hour)) {
			bodies = append(bodies, e.Body)
		}
		want := []string{"kept", "kept expired", "kept reference", "kept reference user", "kept user feedback"}[i]
		if strings.Join(bodies, " ") != want {
			t.Errorf("%d: %q, want %q", i, bodies, want)
		}
	}
}

// TestWhoRemembersIsAnnounced, unless it is a stranger.
func TestWhoRemembersIsAnnounced(t *testing.T) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	var told []string
	m.Announce(func(e agent.Entry) { told = append(told, e.Session+" "+e.Body) })
	for _, turn := range []agent.Turn{{}, {Robot: "0200000000ff", Untrusted: true}} {
		if _, err := m.Of(turn).Remember(agent.Entry{Body: "x", Session: "s"}, noon); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != 1 || told[0] != "s x" {
		t.Errorf("told %q", told)
	}
}

// TestReadNote reads the marker with what it says of a fact.
func TestReadNote(t *testing.T) {
	for content, want := range map[string]agent.Note{
		"REMEMBER: a  fact":                            {Text: "a fact"},
		"remember feedback #lamp #desk: no: light":     {Text: "no: light", Type: agent.MemoryFeedback, Tags: "lamp desk"},
		"Remember important project: the move":         {Text: "the move", Type: agent.MemoryProject, Important: true},
		"remember reference #" + "x" + ": a place, so": {Text: "a place, so", Type: agent.MemoryReference, Tags: "x"},
	} {
		if got, is := agent.ReadNote(content); !is || got != want {
			t.Errorf("%q: %+v, %v", content, got, is)
		}
		for n := range len(content) {
			if head := content[:n]; n > 0 && !strings.Contains(head, ":") && !agent.NoteBegun(head) {
				t.Errorf("%q does not begin a note", head)
			}
		}
	}
	for _, content := range []string{"remember me: x", "remembering: x", "remember", "happy", "remember #a b c: x"} {
		if got, is := agent.ReadNote(content); is {
			t.Errorf("%q: %+v", content, got)
		}
	}
	if agent.NoteBegun("remember me") || agent.NoteBegun("remember the") {
		t.Error("words in brackets are held back")
	}
}

// BenchmarkMemory searches ten thousand entries.
func BenchmarkMemory(b *testing.B) {
	m := agent.NewMemory(&storetest.Table[agent.Entry]{})
	m.Bound(10_000)
	for n := range 10_000 {
		e := agent.Entry{Type: agent.MemoryTypes()[n%4], Tags: []string{fmt.Sprint("tag", n%50), "all"},
			Body: fmt.Sprintf("Fact number %d is that a neighbour has a cat, and that Ann likes her tea %s", n, strings.Repeat("green ", n%20))}
		if _, err := m.Remember(e, noon.Add(time.Duration(n)*time.Minute)); err != nil {
			b.Fatal(err)
		}
	}
	for name, q := range map[string]agent.Query{"all": {},
		"words": {Text: "neighbour 99 tea", N: 20}, "tags": {Type: agent.MemoryUser, Tags: []string{"tag2"}}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if found, err := m.Query(q, noon.Add(1000*time.Hour)); err != nil || len(found) == 0 {
					b.Fatal(len(found), err)
				}
			}
		})
	}
}
