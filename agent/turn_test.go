package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"perch/agent"
)

// TestTheWantedBrainIsAskedFirst: the others follow in their order.
func TestTheWantedBrainIsAskedFirst(t *testing.T) {
	for wanted, want := range map[string][]string{
		"":         {"a", "b", "b", "c"},
		"c":        {"c", "a", "b", "b"},
		"b":        {"b", "a", "b", "c"},
		"b 2":      {"b", "a", "b", "c"},
		"b 3":      {"a", "b", "b", "c"},
		"nobody":   {"a", "b", "b", "c"},
		"b 2 more": {"a", "b", "b", "c"},
	} {
		var asked []string
		var second *brain
		var brains []agent.Brain
		for i, name := range []string{"a", "b", "b", "c"} {
			b := &brain{name: name, err: agent.ErrAway}
			if i == 2 {
				second = b
			}
			brains = append(brains, b)
		}
		p := &published{}
		m := newMind(p, nil, brains...)
		err := m.Answer(t.Context(), agent.Turn{Conversation: "c", Text: "hi", Brain: wanted, Now: noon}, func(agent.Reply) error { return nil })
		if !errors.Is(err, agent.ErrNoBrain) {
			t.Fatal(err)
		}
		for _, b := range strings.Fields(strings.ReplaceAll(err.Error(), "\n", " ")) {
			if name, is := strings.CutSuffix(b, ":"); is && slices.Contains([]string{"a", "b", "c"}, name) {
				asked = append(asked, name)
			}
		}
		if !slices.Equal(asked, want) || len(second.heard) != 1 {
			t.Errorf("%q: asked %v (%v), want %v", wanted, asked, err, want)
		}
	}
	first, second := &eyes{says: "A cat."}, &eyes{says: "A dog."}
	if said, err := newMind(&published{}, nil, first, second).See(t.Context(), agent.Look{Brain: second.Name() + " 2"}); err != nil ||
		said != "A dog." {
		t.Errorf("seen is %q, %v", said, err)
	}
}

// TestASkinThatJoinsARobotsConversation: its turn does not name the robot's
// persona, and is answered with it.
func TestASkinThatJoinsARobotsConversation(t *testing.T) {
	b := &brain{name: "a", replies: []agent.Reply{agent.Done{}}}
	m := newMind(&published{}, nil, b)
	cook := agent.Persona{Name: "Cook"}
	m.Complete(func(t *agent.Turn) {
		if t.Robot == "a0b1c2d3e4f5" {
			t.Name, t.Persona, t.Language = "kitchen", &cook, "de"
		}
	})
	for _, turn := range []agent.Turn{
		{Conversation: "a0b1c2d3e4f5", Robot: "a0b1c2d3e4f5", Text: "hi", Language: "en"},
		{Conversation: "a0b1c2d3e4f5", Robot: "a0b1c2d3e4f5", Text: "hi", Language: "fr", Name: "hall"},
		{Conversation: "skin", Text: "hi", Language: "en"},
	} {
		if err := m.Answer(t.Context(), turn, func(agent.Reply) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.heard[0]; got.Name != "kitchen" || got.Persona != &cook || got.Language != "de" {
		t.Errorf("a turn that joins a robot's talk: %+v", got)
	}
	if got := b.heard[1]; got.Name != "hall" || got.Persona != nil || got.Language != "fr" {
		t.Errorf("a turn that says who answers: %+v", got)
	}
	if got := b.heard[2]; got.Name != "" || got.Persona != nil || got.Language != "en" {
		t.Errorf("a turn of no robot: %+v", got)
	}
}
