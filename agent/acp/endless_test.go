package acp_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/acp"
)

// TestEndlessAgents: a turn, its words and its silence have bounds, and who
// listens hears so politely. The agent is asked to stop.
func TestEndlessAgents(t *testing.T) {
	const cut, steps = "|I was cut off: the answer was too long.|.done", "|I stopped here: it took too many steps.|.done"
	for name, c := range map[string]struct {
		words  string
		change func(*acp.Options)
		ends   string
		away   string
	}{
		"sentences": {"repeat agent_message_chunk 0 I think so. ", nil, cut, ""},
		"one word":  {"repeat agent_message_chunk 0 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", nil, cut, ""},
		"200 MB":    {"shout 20000;say End.", nil, cut, ""},
		"a letter at a time": {"say Well. ;repeat agent_message_chunk 20 a ",
			func(o *acp.Options) { o.Words = 300 * time.Millisecond }, steps, ""},
		"thoughts": {"say Well. ;repeat agent_thought_chunk 20 hm",
			func(o *acp.Options) { o.Turn = 300 * time.Millisecond }, steps, ""},
		"tools": {"say Well. ;repeat tool 20 Look",
			func(o *acp.Options) { o.Turn, o.Words = 300*time.Millisecond, time.Hour }, steps, ""},
		"what is no word":    {"repeat agent_message_chunk 20 ", func(o *acp.Options) { o.Silence = time.Second }, "", "no sign of life"},
		"what is no thought": {"repeat agent_thought_chunk 20 ", func(o *acp.Options) { o.Silence = time.Second }, "", "no sign of life"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := build(t, "plain", func(o *acp.Options) {
				o.Grace = time.Minute // a slow machine has to see it being asked to stop
				if c.change != nil {
					c.change(o)
				}
			})
			got, err := r.say(c.words)
			switch {
			case len(got) > 9000, strings.Contains(got, "End."): // what was left out is not passed over
				t.Errorf("%d letters are spoken, ending with %q", len(got), got[max(0, len(got)-200):])
			case c.away == "" && (err != nil || !strings.HasSuffix(got, c.ends)):
				t.Errorf("it ends with %q, %v", got[max(0, len(got)-200):], err)
			case c.away != "" && (!errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), c.away)):
				t.Errorf("%q, %v", got, err)
			}
			r.eventually("it is asked to stop", func() bool { return strings.Contains(r.received(), "session/cancel") })
		})
	}
}

// TestStrangersHaveNoAgent: a robot that nobody has adopted by name is passed
// over, and the agent is not even started. A program without a robot is answered.
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
