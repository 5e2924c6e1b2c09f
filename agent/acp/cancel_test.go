package acp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/acp"
	"perch/must"
)

// stage is a point of a turn at which the test cancels the turn.
type stage struct {
	mode  string
	words string
	at    string                                   // if not "", the test cancels when the agent has received this text
	on    func(context.Context, agent.Reply) error // otherwise, on is called with each reply, and cancels the turn
	until func(*acp.Brain) bool                    // if not nil, the test waits for this before it calls on
	want  string                                   // text that the agent must then receive
	next  string                                   // session and turn that the fake reports in the next turn
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
		"starting":          {mode: "slow start", words: "say No.", at: `"initialize"`, next: "s1 turn 1 blocks 2"},
		"opening a session": {mode: "slow session", words: "say No.", at: `"session/new"`, next: "s1 turn 1 blocks 2"},
		"waiting":           {mode: "plain", words: "wait go", at: `"session/prompt"`, want: "session/cancel", next: "s1 turn 2 blocks 1"},
		"thinking":          {mode: "plain", words: "think hm;wait go", at: `"session/prompt"`, want: "session/cancel", next: "s1 turn 2 blocks 1"},
		"in a tool": {mode: "plain", words: "tool c execute in_progress npm test;wait go", on: tool, want: "session/cancel",
			next: "s1 turn 2 blocks 1"},
		"asking": {mode: "plain", words: "ask c execute npm test", on: ask, want: `{"outcome":{"outcome":"cancelled"}}`, next: "s1 turn 2 blocks 1"},
		"asking, one waits": {mode: "plain", words: "asktwice c execute npm test", on: ask, want: `{"outcome":{"outcome":"cancelled"}}`,
			next: "s1 turn 2 blocks 1"},
		// The next turn waits until the agent has stopped the cancelled one.
		"speaking": {mode: "plain", words: "say One. Two. Three.;wait go", on: say, want: "session/cancel", next: "s1 turn 2 blocks 1"},
		"speaking, all said": {mode: "plain", words: "say One. Two. Three.", on: say, next: "s1 turn 2 blocks 1",
			until: func(b *acp.Brain) bool { _, requests, _ := b.Open(); return requests == 0 }},
		"speaking, asked": {mode: "plain", words: "say One. Two. Three.;ask c execute x", on: say, next: "s1 turn 2 blocks 1",
			until: func(b *acp.Brain) bool { _, _, waiting := b.Open(); return waiting > 0 }, want: `{"outcome":{"outcome":"cancelled"}}`},
	}
}

// TestCancel tests at several points of a turn that Think returns when ctx is cancelled,
// without waiting for the agent to stop. The agent must be notified, every permission must be
// answered, and the next turn must work.
func TestCancel(t *testing.T) {
	for name := range stages(nil) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := stages(cancel)[name]
			r := build(t, s.mode, func(o *acp.Options) { o.Grace = time.Minute })
			h := &received{}
			if s.on != nil {
				h.on = func(reply agent.Reply) error {
					if s.until != nil {
						r.eventually("the agent has gone on", func() bool { return s.until(r.brain) })
					}
					return s.on(ctx, reply)
				}
			}
			thought := make(chan error, 1)
			go func() { thought <- r.brain.Think(ctx, r.turnOf("a", s.words), h.take) }()
			if s.at != "" {
				r.eventually("the agent hears "+s.at, func() bool { return strings.Contains(r.received(), s.at) })
				cancel()
			}
			if err := <-thought; !errors.Is(err, context.Canceled) {
				t.Errorf("it returned %v", err)
			}
			r.make("go")
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
			r.eventually("no request is open", func() bool { _, n, _ := r.brain.Open(); return n == 0 })
		})
	}
}

// prompted waits until the agent has received this number of prompts that contain words.
func (r *rig) prompted(words string, times int) {
	r.t.Helper()
	r.eventually("the agent is asked to "+words, func() bool {
		n := 0
		for line := range strings.Lines(r.received()) {
			if strings.Contains(line, "session/prompt") && strings.Contains(line, words) {
				n++
			}
		}
		return n >= times
	})
}

// TestAgentThatIgnoresCancelIsStopped tests that an agent that ignores a cancel is stopped, at
// once or at the end of another conversation's turn.
func TestAgentThatIgnoresCancelIsStopped(t *testing.T) {
	r := build(t, "plain", func(o *acp.Options) { o.Grace = 150 * time.Millisecond })
	cuts := 0
	cut := func() {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		thought := make(chan error, 1)
		go func() { thought <- r.brain.Think(ctx, r.turnOf("a", "hang"), (&received{}).take) }()
		cuts++
		r.prompted(`"hang"`, cuts)
		cancel()
		if err := <-thought; !errors.Is(err, context.Canceled) {
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
	r.want("where", "😐|Session s1 turn 1 blocks 2.|.done") // the session of a new process
	if n := len(r.pids()); n != 2 {
		t.Errorf("%d processes were started", n)
	}

	other := make(chan error, 1)
	go func() {
		other <- r.brain.Think(context.Background(), r.turnOf("b", "await go;say Mine."), (&received{}).take)
	}()
	r.prompted("Mine.", 1)
	cut()
	r.eventually("its session is given up", func() bool { n, _, _ := r.brain.Open(); return n == 1 })
	if !r.brain.Running() {
		t.Error("it was ended in the middle of another's turn")
	}
	r.make("go")
	must.Succeed(t, <-other)
	r.eventually("it is ended after that", func() bool { return !r.brain.Running() })
}

// TestOneTurnAtATime tests that a turn waits for the running turn of its conversation, and can
// be cancelled while it waits.
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
		first <- r.brain.Think(context.Background(), r.turnOf("a", "say One. Two.;await go"), h.take)
	}()
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.brain.Think(ctx, r.turnOf("a", "say No."), (&received{}).take); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	r.make("go")
	r.want("where", "😐|Session s1 turn 2 blocks 1.|.done")
	must.Succeed(t, <-first)
}
