package acp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/acp"
)

// stage is where a turn is cut off: on is called with each reply.
type stage struct {
	mode  string
	words string
	after time.Duration                            // cut off so long after the beginning
	on    func(context.Context, agent.Reply) error // or by the one who speaks
	want  string                                   // what the agent then heard
	next  string                                   // the session the next turn is in
}

func stages(cancel func()) map[string]stage {
	speaking := func(kind func(agent.Reply) bool) func(context.Context, agent.Reply) error {
		return func(ctx context.Context, r agent.Reply) error {
			if !kind(r) {
				return nil
			}
			cancel()
			<-ctx.Done()
			if ask, ok := r.(agent.Ask); ok {
				ask.Answer(agent.Answer{Outcome: agent.AnswerClosed})
			}
			return ctx.Err()
		}
	}
	say := speaking(func(r agent.Reply) bool { _, ok := r.(agent.Say); return ok })
	tool := speaking(func(r agent.Reply) bool { _, ok := r.(agent.ToolStatus); return ok })
	ask := speaking(func(r agent.Reply) bool { _, ok := r.(agent.Ask); return ok })
	return map[string]stage{
		"starting":          {mode: "slow start", words: "say No.", after: 50 * time.Millisecond, next: "s1 turn 1 blocks 2"},
		"opening a session": {mode: "slow session", words: "say No.", after: 150 * time.Millisecond, next: "s1 turn 1 blocks 2"},
		"waiting":           {mode: "plain", words: "wait", after: 300 * time.Millisecond, want: "session/cancel", next: "s1 turn 2 blocks 1"},
		"thinking":          {mode: "plain", words: "think hm;wait 100", after: 300 * time.Millisecond, want: "session/cancel", next: "s1 turn 2 blocks 1"},
		"in a tool":         {mode: "plain", words: "tool c execute in_progress npm test;wait", on: tool, want: "session/cancel", next: "s1 turn 2 blocks 1"},
		"asking":            {mode: "plain", words: "ask c execute npm test", on: ask, want: `{"outcome":{"outcome":"cancelled"}}`, next: "s1 turn 2 blocks 1"},
		"asking, one waits": {mode: "plain", words: "asktwice c execute npm test", on: ask, want: `{"outcome":{"outcome":"cancelled"}}`,
			next: "s1 turn 2 blocks 1"},
		"speaking": {mode: "plain", words: "say One. Two. Three.;wait", on: say, want: "session/cancel", next: "s1 turn 2 blocks 1"},
		// The next turn waits for an agent that needs a moment to stop.
		"slow to stop": {mode: "plain", words: "say One. Two. Three.;wait 200", on: say, want: "session/cancel", next: "s1 turn 2 blocks 1"},
		"speaking, all said": {mode: "plain", words: "say One. Two. Three.",
			on: func(ctx context.Context, r agent.Reply) error { time.Sleep(20 * time.Millisecond); return say(ctx, r) }, next: "s1 turn 2 blocks 1"},
		"speaking, asked": {mode: "plain", words: "say One. Two. Three.;ask c execute x",
			on:   func(ctx context.Context, r agent.Reply) error { time.Sleep(20 * time.Millisecond); return say(ctx, r) },
			want: `{"outcome":{"outcome":"cancelled"}}`, next: "s1 turn 2 blocks 1"},
	}
}

// TestCancel: at whatever moment somebody interrupts, Think returns at once,
// the agent is notified, every permission is answered, and the next turn works.
func TestCancel(t *testing.T) {
	for name := range stages(nil) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := stages(cancel)[name]
			r := build(t, s.mode)
			h := &received{}
			if s.on != nil {
				h.on = func(reply agent.Reply) error { return s.on(ctx, reply) }
			} else {
				time.AfterFunc(s.after, cancel)
			}
			began := make(chan time.Time, 1)
			context.AfterFunc(ctx, func() { began <- time.Now() })
			err := r.brain.Think(ctx, r.turnOf("a", s.words), h.take)
			ended := time.Now()
			if took := ended.Sub(<-began); !errors.Is(err, context.Canceled) || took > 300*time.Millisecond {
				t.Errorf("it returned %v after %v", err, took)
			}
			if s.want != "" {
				r.eventually("the agent hears "+s.want, func() bool { return strings.Contains(r.received(), s.want) })
			}
			if strings.Contains(h.String(), ".done") {
				t.Error("a turn that was cut off ended well")
			}
			r.want("where", "😐|Session "+s.next+".|.done")
			if asked, answered := strings.Count(s.words, "ask"), strings.Count(r.received(), `"outcome":"cancelled"`); strings.HasPrefix(s.words,
				"asktwice") && answered != 2 || asked > answered {
				t.Errorf("%d permissions were answered as cancelled", answered)
			}
			if strings.Contains(r.received(), `"optionId"`) {
				t.Error("a cancelled permission was answered otherwise")
			}
			r.eventually("no request is open", func() bool { _, n := r.brain.Open(); return n == 0 })
		})
	}
}

// TestAnAgentThatDoesNotStop is ended, unless another turn needs it.
func TestAnAgentThatDoesNotStop(t *testing.T) {
	r := build(t, "plain", func(o *acp.Options) { o.Grace = 150 * time.Millisecond })
	cut := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := r.brain.Think(ctx, r.turnOf("a", "hang"), (&received{}).take); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	r.want("say Up.", "😐|Up.|.done")
	cut()
	r.eventually("it is ended", func() bool { return !r.brain.Running() })
	if !strings.Contains(r.received(), "session/cancel") {
		t.Error("it was not asked first")
	}
	if _, err := r.say("say Too soon."); !errors.Is(err, agent.ErrAway) {
		t.Error(err)
	}
	r.pass(time.Second)
	r.want("where", "😐|Session s1 turn 1 blocks 2.|.done") // of a new process
	if n := len(r.pids()); n != 2 {
		t.Errorf("%d processes were started", n)
	}

	other := make(chan error, 1)
	go func() {
		other <- r.brain.Think(context.Background(), r.turnOf("b", "sleep 1500;say Mine."), (&received{}).take)
	}()
	r.eventually("both are in a turn", func() bool { n, _ := r.brain.Open(); return n == 2 })
	cut()
	time.Sleep(300 * time.Millisecond) // the grace is over
	if !r.brain.Running() {
		t.Error("it was ended in the middle of another's turn")
	}
	if err := <-other; err != nil {
		t.Error(err)
	}
	r.eventually("it is ended after that", func() bool { return !r.brain.Running() })
}

func TestSilence(t *testing.T) {
	t.Parallel()
	r := build(t, "plain", func(o *acp.Options) { o.Silence = time.Second; o.Grace = 50 * time.Millisecond })
	// Thoughts are signs of life.
	r.want("sleep 400;think a;sleep 400;think b;sleep 400;say Now.", "😐|Now.|.done")
	if _, err := r.say("wait"); !errors.Is(err, agent.ErrAway) || !strings.Contains(err.Error(), "no sign of life") {
		t.Error(err)
	}
	r.eventually("it is asked to stop", func() bool { return strings.Contains(r.received(), "session/cancel") })
}

// TestOneTurnAtATime: a turn of the same conversation waits, and may be cut
// off while it does.
func TestOneTurnAtATime(t *testing.T) {
	r := build(t, "plain")
	first := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		h := &received{on: func(reply agent.Reply) error {
			if _, ok := reply.(agent.Felt); ok {
				close(began)
			}
			return nil
		}}
		first <- r.brain.Think(context.Background(), r.turnOf("a", "say One. Two.;sleep 200"), h.take)
	}()
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.brain.Think(ctx, r.turnOf("a", "say No."), (&received{}).take); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	r.want("where", "😐|Session s1 turn 2 blocks 1.|.done")
	if err := <-first; err != nil {
		t.Error(err)
	}
}
