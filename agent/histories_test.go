package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/store/storetest"
)

// historyOf is the history that a brain is given in a conversation.
func historyOf(t *testing.T, m *agent.Mind, b *brain, conversation string) []agent.Exchange {
	t.Helper()
	err := m.Answer(t.Context(), agent.Turn{Conversation: conversation, Now: noon}, func(agent.Reply) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return b.heard[len(b.heard)-1].History
}

func TestAConversationOutlivesARestart(t *testing.T) {
	table := &storetest.Table[agent.Conversation]{}
	b := &brain{replies: []agent.Reply{felt("sad", 1), felt("happy", 1), agent.Done{}}}
	start := func() *agent.Mind {
		m := newMind(&published{}, nil, b)
		m.Keep(agent.NewHistories(table))
		return m
	}
	m := start()
	historyOf(t, m, b, "c")
	m.Remembered("c", agent.Exchange{Heard: "h", Said: "s"}, noon)
	want := agent.Exchange{Heard: "h", Said: "s", Emoji: "😢"}
	m = start()
	if h := historyOf(t, m, b, "c"); len(h) != 1 || h[0] != want {
		t.Errorf("after a restart: %+v", h)
	}
	full := errors.New("the disk is full")
	table.Breaks(full)
	if err := m.Forget("c"); !errors.Is(err, full) {
		t.Errorf("forgotten on a full disk: %v", err)
	}
	table.Breaks(nil)
	if err := errors.Join(m.Forget("c"), m.Forget("c"), m.Forget("unknown")); err != nil || len(historyOf(t, m, b, "c")) > 0 {
		t.Errorf("forgotten: %v, %+v", err, historyOf(t, m, b, "c"))
	}
	if h := historyOf(t, start(), b, "c"); len(h) > 0 {
		t.Errorf("forgotten, after a restart: %+v", h)
	}
	if err := newMind(&published{}, nil, b).Forget("c"); err != nil {
		t.Error(err)
	}
}

func TestHistoriesAreBounded(t *testing.T) {
	table := &storetest.Table[agent.Conversation]{}
	b := &brain{replies: []agent.Reply{agent.Done{}}}
	m := newMind(&published{}, nil, b)
	m.Keep(agent.NewHistories(table))
	m.Remembered("a0b1c2d3e4f5", agent.Exchange{Heard: "h"}, noon.Add(-time.Hour)) // a robot's stays
	for i := range 600 {
		m.Remembered(fmt.Sprint(i), agent.Exchange{Heard: "h"}, noon.Add(time.Duration(i)*time.Second))
	}
	_, oldest := table.Kept["0"]
	if _, robots := table.Kept["a0b1c2d3e4f5"]; len(table.Kept) != 500 || oldest || !robots {
		t.Errorf("%d are kept, the oldest: %t, the robot's: %t", len(table.Kept), oldest, robots)
	}
	for range 30 {
		m.Remembered("599", agent.Exchange{Heard: "h", Said: strings.Repeat("x", 4000)}, noon)
	}
	if n := len(table.Kept["599"].Exchanges); n != 8 {
		t.Errorf("%d long exchanges are kept", n)
	}
	m.Remembered(strings.Repeat("n", 600), agent.Exchange{Heard: "h"}, noon)
	m.Remembered("", agent.Exchange{Heard: "h"}, noon)
	for name := range table.Kept {
		if name == "" || len(name) > 512 {
			t.Errorf("kept %q", name)
		}
	}
	for i := range 100 {
		table.Kept[fmt.Sprint("more", i)] = agent.Conversation{Used: noon.Add(-time.Hour), Exchanges: make([]agent.Exchange, 40)}
	}
	m = newMind(&published{}, nil, b)
	m.Keep(agent.NewHistories(table))
	if len(table.Kept) != 500 {
		t.Errorf("%d are kept after a start", len(table.Kept))
	}
}
