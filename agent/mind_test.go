package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/store/storetest"
)

// published records the published events.
type published struct {
	mu     sync.Mutex
	events []event.Event
}

func (p *published) Publish(_ device.ID, _ string, e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
}

// brain answers with a script.
type brain struct {
	name    string
	replies []agent.Reply
	err     error
	heard   []agent.Turn
	wait    time.Duration
}

func (b *brain) Name() string { return b.name }

func (b *brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	b.heard = append(b.heard, t)
	time.Sleep(b.wait)
	for _, r := range b.replies {
		if err := out(r); err != nil {
			return err
		}
	}
	return b.err
}

func newMind(p *published, m *agent.Memory, brains ...agent.Brain) *agent.Mind {
	return agent.NewMind(brains, m, p, slog.New(slog.DiscardHandler))
}

func answers(t *testing.T, m *agent.Mind, text string) (replies []agent.Reply, err error) {
	t.Helper()
	err = m.Answer(t.Context(), agent.Turn{Conversation: "c", Text: text, Now: noon}, func(r agent.Reply) error {
		replies = append(replies, r)
		return nil
	})
	return replies, err
}

func TestTheNextBrainIsAsked(t *testing.T) {
	away := &brain{name: "away", err: agent.ErrAway}
	here := &brain{name: "here", replies: []agent.Reply{agent.Say{Text: "Yes."}, agent.Done{}}}
	p := &published{}
	replies, err := answers(t, newMind(p, nil, away, here), "hello")
	if err != nil || !reflect.DeepEqual(replies, here.replies) {
		t.Errorf("%v, %v", replies, err)
	}
	want := []event.Event{event.ThinkingStarted{Brain: "away"}, event.ThinkingStarted{Brain: "here"}}
	if !reflect.DeepEqual(p.events, want) {
		t.Errorf("published %v", p.events)
	}
}

// TestNoOtherBrainIsAsked after one has spoken, or has failed for another reason
// than that it is away.
func TestNoOtherBrainIsAsked(t *testing.T) {
	for _, first := range []*brain{
		{name: "broke", replies: []agent.Reply{agent.Say{Text: "Well"}}, err: agent.ErrAway}, {name: "broken", err: errors.New("a bug")},
	} {
		other := &brain{name: "other", replies: []agent.Reply{agent.Done{}}}
		if _, err := answers(t, newMind(&published{}, nil, first, other), "hello"); !errors.Is(err, agent.ErrNoBrain) || len(other.heard) > 0 {
			t.Errorf("%s: %v, the other was asked %d times", first.name, err, len(other.heard))
		}
	}
}

func TestHistoryIsWhatWasReallySpoken(t *testing.T) {
	b := &brain{replies: []agent.Reply{agent.Done{}}}
	m := newMind(&published{}, nil, b)
	for i := range 25 {
		m.Remembered("c", agent.Exchange{Heard: "h", Said: strings.Repeat("x", i)}, noon)
	}
	if _, err := answers(t, m, "hello"); err != nil {
		t.Fatal(err)
	}
	if h := b.heard[0].History; len(h) != 20 || h[19].Said != strings.Repeat("x", 24) {
		t.Errorf("history of %d exchanges", len(h))
	}
}

// TestFactsAreRememberedAndNotSpoken, be they marked in a sentence or replies of
// their own.
func TestFactsAreRememberedAndNotSpoken(t *testing.T) {
	wave := agent.Cue{Kind: "anim", Value: "wave"}
	for _, c := range []struct{ replies, want []agent.Reply }{
		{[]agent.Reply{agent.Say{Text: "Nice. [REMEMBER: the user's cat is called Tom]"}, agent.Say{Text: "[remember: x]"}, agent.Done{}},
			[]agent.Reply{agent.Say{Text: "Nice."}, agent.Done{}}},
		{[]agent.Reply{agent.Note{Text: "the cat is called Tom"}, wave, agent.Done{}}, []agent.Reply{wave, agent.Done{}}},
	} {
		memory := agent.NewMemory(&storetest.Table[agent.Entry]{})
		replies, err := answers(t, newMind(&published{}, memory, &brain{replies: c.replies}), "hello")
		if err != nil || !reflect.DeepEqual(replies, c.want) {
			t.Errorf("%v, %v", replies, err)
		}
		if found := memory.Search("cat tom", noon); len(found) != 1 || found[0].Source != "marker" {
			t.Errorf("remembered %+v", memory.Search("", noon))
		}
	}
}

func TestTurnsOfAConversationWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &brain{wait: time.Second, replies: []agent.Reply{agent.Done{}}}
		m := newMind(&published{}, nil, b)
		began := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				_ = m.Answer(t.Context(), agent.Turn{Conversation: "c"}, func(agent.Reply) error { return nil })
			})
		}
		wg.Wait()
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("three turns took %s", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wg.Go(func() {
			_ = m.Answer(t.Context(), agent.Turn{Conversation: "d"}, func(agent.Reply) error { return nil })
		})
		synctest.Wait()
		if err := m.Answer(ctx, agent.Turn{Conversation: "d"}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled turn that waited: %v", err)
		}
		wg.Wait()
	})
}

func TestMemory(t *testing.T) {
	table := &storetest.Table[agent.Entry]{}
	m := agent.NewMemory(table)
	first, err := m.Remember(agent.Entry{Key: "place keys", Name: "keys", Body: " Your keys are in the car. "}, noon)
	if err != nil || first.ID == "" || first.Body != "Your keys are in the car." || first.Type != agent.MemoryUser {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := m.Remember(agent.Entry{Key: "place keys", Name: "keys", Body: "Your keys are in the hall."}, noon)
	if err != nil || second.ID != first.ID || len(table.Kept) != 1 {
		t.Errorf("the same key again: %+v, %v", second, err)
	}
	if e, ok := m.Recall("place keys", noon.Add(time.Hour)); !ok || e.Body != second.Body || !e.Used.Equal(noon.Add(time.Hour)) {
		t.Errorf("recalled %+v, %v", e, ok)
	}
	if _, ok := m.Recall("place glasses", noon); ok {
		t.Error("recalled what was never said")
	}
	short := agent.Entry{Key: "tea", Body: "Tea at four.", Expires: noon.Add(time.Minute)}
	if _, err := m.Remember(short, noon); err != nil {
		t.Fatal(err)
	}
	if _, ok := m.Recall("tea", noon.Add(time.Minute)); ok || len(m.Search("tea", noon.Add(time.Minute))) > 0 {
		t.Error("recalled what had expired")
	}
	if err := m.Forget(first.ID); err != nil {
		t.Fatal(err)
	}
	if err := m.Forget(first.ID); !errors.Is(err, agent.ErrForgotten) {
		t.Errorf("forgotten twice: %v", err)
	}
	for _, body := range []string{"", "  ", strings.Repeat("x", 4001)} {
		if _, err := m.Remember(agent.Entry{Body: body}, noon); !errors.Is(err, agent.ErrTooMuch) {
			t.Errorf("a body of %d bytes: %v", len(body), err)
		}
	}
}

func TestAFullMemoryDropsTheLeastUsedEntry(t *testing.T) {
	table := &storetest.Table[agent.Entry]{}
	m := agent.NewMemory(table)
	var ids []string
	for i := range 2000 {
		e, err := m.Remember(agent.Entry{Key: strings.Repeat("k", i+1), Body: "x"}, noon.Add(time.Duration(i)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	m.Recall("k", noon.Add(time.Hour)) // the oldest, used since
	if _, err := m.Remember(agent.Entry{Key: "new", Body: "x"}, noon.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	_, oldest := table.Kept[ids[0]]
	_, second := table.Kept[ids[1]]
	if len(table.Kept) != 2000 || !oldest || second {
		t.Errorf("%d entries; the used one is there: %v, the unused one: %v", len(table.Kept), oldest, second)
	}
}

// TestAConversationContinuesFromTheClientsHistory: until the mind has a history of
// its own.
func TestAConversationContinuesFromTheClientsHistory(t *testing.T) {
	b := &brain{replies: []agent.Reply{agent.Done{}}}
	m := newMind(&published{}, nil, b)
	given := []agent.Exchange{{Heard: "I am Ann.", Said: "Hello Ann."}}
	for _, own := range []bool{false, true} {
		if own {
			m.Remembered("c", agent.Exchange{Heard: "h", Said: "kept"}, noon)
		}
		turn := agent.Turn{Conversation: "c", Text: "hello", Now: noon, History: given}
		if err := m.Answer(t.Context(), turn, func(agent.Reply) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.heard[0].History) != 1 || b.heard[0].History[0].Said != "Hello Ann." || b.heard[1].History[0].Said != "kept" {
		t.Errorf("%+v", b.heard)
	}
}

func felt(name string, intensity float64) agent.Felt {
	for _, e := range agent.Emotions() {
		if e.Name == name {
			return agent.Felt{Emotion: e, Intensity: intensity}
		}
	}
	panic(name)
}
