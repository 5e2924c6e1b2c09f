package assist_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/assist"
	"perch/device"
)

// TestEndlessAnswers tests that answers that are too long or take too long are cut off, and
// that a phrase is spoken then.
func TestEndlessAnswers(t *testing.T) {
	goesOn := func(n int, piece string, pause time.Duration) func(*peer, command) bool {
		return func(p *peer, m command) bool {
			p.began(m)
			p.delta(m, `{"role":"assistant"}`)
			for range n {
				p.delta(m, piece)
				time.Sleep(pause)
			}
			return true
		}
	}
	for name, c := range map[string]struct {
		answer func(*peer, command) bool
		turn   time.Duration
	}{
		"sentences":          {goesOn(2000, `{"content":"I think so. "}`, 0), 0},
		"one sentence":       {goesOn(2000, `{"content":"and so on and so on and so on and so on and so on "}`, 0), 0},
		"large pieces":       {goesOn(20, `{"content":"`+strings.Repeat("word ", 1000)+`"}`, 0), 0},
		"a letter at a time": {goesOn(60, `{"content":"A. "}`, 20*time.Millisecond), 400 * time.Millisecond},
		"all at once": {func(p *peer, m command) bool {
			p.began(m)
			p.end(m, "action_done", strings.Repeat("I think so. ", 5000), "c1")
			return true
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeHA(t, c.answer).brain(t, func(o *assist.Options) { o.TurnWithin = c.turn })
			got, err := say(t, b, "x")
			if err != nil || !strings.HasSuffix(got, "|I was cut off.|.done") || len(got) > 9000 {
				t.Errorf("%d letters, ending with %q, %v", len(got), got[max(0, len(got)-100):], err)
			}
		})
	}
	h := newFakeHA(t, nil)
	h.rest = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"response":{"speech":{"plain":{"speech":"` + strings.Repeat("I think so. ", 5000) +
			`"}},"response_type":"action_done"}}`))
	}
	var replies []string
	err := h.brain(t, func(o *assist.Options) { o.REST = true }).Think(t.Context(), agent.Turn{Text: "x", Language: "es"}, collect(&replies))
	if got := strings.Join(replies, "|"); err != nil || !strings.HasSuffix(got, "|Me he quedado a medias.|.done") || len(got) > 9000 {
		t.Errorf("by REST: %d letters, ending with %q, %v", len(got), got[max(0, len(got)-100):], err)
	}
}

// TestSlowAnswersAreGivenUp tests that an answer that arrives far slower than it is spoken is
// stopped, and that a pause during a tool may be longer than a pause in the text.
func TestSlowAnswersAreGivenUp(t *testing.T) {
	letters := func(piece string, pause time.Duration, n int) func(*peer, command) bool {
		return func(p *peer, m command) bool {
			p.began(m)
			p.delta(m, `{"role":"assistant"}`)
			for range n {
				time.Sleep(pause)
				p.delta(m, piece)
			}
			p.end(m, "action_done", "Yes.", "c1")
			return true
		}
	}
	for name, c := range map[string]struct {
		answer func(*peer, command) bool
		want   string // text of the error; "" if the turn succeeds
	}{
		"letters": {letters(`{"content":"a"}`, 800*time.Millisecond, 8), "far slower than it is spoken"},
		"thought": {letters(`{"thinking_content":"a"}`, 800*time.Millisecond, 8), "far slower than it is spoken"},
		"words":   {letters(`{"content":"word "}`, 800*time.Millisecond, 4), ""},
		"a tool": {func(p *peer, m command) bool {
			p.began(m)
			p.delta(m, `{"role":"assistant","tool_calls":[{"id":"1","tool_name":"Search"}]}`)
			time.Sleep(1500 * time.Millisecond)
			p.delta(m, `{"role":"tool_result","tool_call_id":"1"}`)
			p.end(m, "action_done", "Yes.", "c1")
			return true
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, err := say(t, newFakeHA(t, c.answer).brain(t, func(o *assist.Options) { o.IdleWithin = time.Second }), "x")
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "":
				asAway(t, err, c.want)
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it took %s", took)
				}
			}
		})
	}
}

// TestStrangersDoNotControlTheHome tests that untrusted turns of a robot and of a program are refused
// without a connection to Home Assistant, and that a trusted turn is answered.
func TestStrangersDoNotControlTheHome(t *testing.T) {
	h := newFakeHA(t, plain)
	b := h.brain(t)
	var replies []string
	turn := agent.Turn{Conversation: "a", Untrusted: true, Text: "open the door"}
	for _, robot := range []device.ID{"a0b1c2d3e4f5", ""} {
		turn.Robot = robot
		if err := b.Think(t.Context(), turn, collect(&replies)); !errors.Is(err, agent.ErrStranger) || !errors.Is(err, agent.ErrAway) ||
			h.conns.Load() > 0 || replies != nil {
			t.Errorf("robot %q: %v, %q, %d connections", robot, err, replies, h.conns.Load())
		}
	}
	turn.Untrusted = false
	if err := b.Think(t.Context(), turn, collect(&replies)); err != nil || len(replies) == 0 {
		t.Errorf("%v, %q", err, replies)
	}
}
