package acp_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/acp"
)

func TestEndlessWordsAreCutOff(t *testing.T) {
	for name, words := range map[string]string{
		"sentences": "repeat I think so. ",
		"one word":  "repeat aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"200 MB":    "shout 20000;say End.",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := build(t, "plain", func(o *acp.Options) { o.Grace = time.Minute }) // long enough for a slow machine to read the cancel before the agent is stopped
			got, err := r.say(words)
			cut := strings.HasSuffix(got, "|I was cut off: the answer was too long.|.done")
			if err != nil || !cut || len(got) > 9000 || strings.Contains(got, "End.") {
				t.Errorf("%d letters are spoken, ending with %q, %v", len(got), got[max(0, len(got)-200):], err)
			}
			r.eventually("it is asked to stop", func() bool { return strings.Contains(r.received(), "session/cancel") })
		})
	}
}

// TestStrangersHaveNoAgent tests that a stranger's turn is refused without starting the agent.
// An untrusted turn without a robot is answered.
func TestStrangersHaveNoAgent(t *testing.T) {
	r := build(t, "plain")
	turn := r.turnOf("a", "say Yes.")
	turn.Untrusted = true
	h := &received{}
	if err := r.brain.Think(t.Context(), turn, h.take); !errors.Is(err, agent.ErrStranger) || !errors.Is(err, agent.ErrAway) || h.String() != "" ||
		len(r.pids()) > 0 {
		t.Errorf("%v, %q, %d processes", err, h, len(r.pids()))
	}
	turn.Robot = ""
	if err := r.brain.Think(t.Context(), turn, h.take); err != nil || h.String() != "😐|Yes.|.done" {
		t.Errorf("%v, %q", err, h)
	}
}
