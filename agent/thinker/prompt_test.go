package thinker_test

import (
	"strings"
	"testing"

	"perch/agent"
	"perch/agent/thinker"
)

// TestAPersonaInThePrompt: a robot's own persona replaces the household's, and its
// name is a line of the prompt.
func TestAPersonaInThePrompt(t *testing.T) {
	household := agent.Persona{Name: "Chan", Text: "You are kind.", Language: "en"}
	for _, c := range []struct {
		turn      agent.Turn
		want, not []string
	}{
		{agent.Turn{}, []string{"You are kind.", "Your name is Chan.", "code en"}, []string{"called"}},
		{agent.Turn{Name: "Kitchen"}, []string{"You are kind.", `"Kitchen"`}, nil},
		{agent.Turn{Name: "Kitchen", Persona: &agent.Persona{Name: "Cook", Text: "You cook.", Language: "fr"}},
			[]string{"You cook.", "Your name is Cook.", "code fr", `"Kitchen"`}, []string{"kind", "Chan"}},
	} {
		m := &model{script: []message{{texts: []string{"Hi."}}}}
		c.turn.Body = &arm{}
		if _, err := think(t, thinker.Options{Model: m, Persona: household}, c.turn); err != nil {
			t.Fatal(err)
		}
		given := m.asked[0].System
		for _, w := range c.want {
			if !strings.Contains(given, w) {
				t.Errorf("the prompt of %q has no %q: %s", c.turn.Name, w, given)
			}
		}
		for _, n := range c.not {
			if strings.Contains(given, n) {
				t.Errorf("the prompt of %q has %q: %s", c.turn.Name, n, given)
			}
		}
	}
}
