package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/device"
	"perch/must"
	"perch/store/storetest"
)

// TestAStrangerHasAMemoryOfItsOwn: a robot that nobody has adopted cannot read the
// owner's memory, adds nothing to it, and remembers its own facts. The memories of
// strangers are bounded.
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

// TestNothingOfAStrangersTalkIsKept: and a stranger with an earlier robot's MAC is
// given nothing of that robot's history.
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
		m.Remembered("a0b1c2d3e4f5", agent.Exchange{Heard: text, Said: "Yes."}, now)
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
