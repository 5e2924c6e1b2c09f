package agent_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/event"
	"perch/must"
	"perch/store/storetest"
)

// drafter is a brain that drafts. Between two replies it waits. It settles before the first reply of the kind settles,
// and counts that as an effect.
type drafter struct {
	brain
	effects int
}

func (*drafter) Drafts() bool { return true }

func (b *drafter) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	b.heard = append(b.heard, t)
	for _, r := range b.replies {
		select {
		case <-time.After(b.wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		if _, effect := r.(agent.ToolStatus); effect {
			if err := t.Settle(ctx); err != nil {
				return err
			}
			b.effects++
		}
		if err := out(r); err != nil {
			return err
		}
	}
	return b.err
}

// drafting begins a draft of the answer to a text. held collects the replies that are held back. stop discards the draft.
func drafting(t *testing.T, m *agent.Mind, text string, held *[]agent.Reply) (d *agent.Draft, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	d = agent.NewDraft(ctx, agent.Turn{Conversation: "c", Text: text, Now: noon}, func(r agent.Reply) { *held = append(*held, r) })
	written := make(chan struct{})
	go func() {
		defer close(written)
		m.Write(d)
	}()
	synctest.Wait()
	return d, func() {
		cancel()
		<-written
	}
}

// TestADraftBecomesTheAnswer: whether the brain has finished, is under way, or waits for a tool, the answer has the same
// replies, in the same order, and the same events as without a draft; and the brain is asked once.
func TestADraftBecomesTheAnswer(t *testing.T) {
	for _, wait := range []time.Duration{0, 300 * time.Millisecond, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			joy := agent.Felt{Emotion: emotion("😊")}
			replies := []agent.Reply{joy, agent.Say{Text: "Well."}, agent.Thought{Text: "?"}, agent.Note{Text: "Tom is a cat"},
				agent.ToolStatus{}, agent.Say{Text: "Done."}, agent.Done{End: agent.Continue}}
			b := &drafter{brain: brain{name: "b", replies: replies, wait: wait}}
			p, memory := &published{}, agent.NewMemory(&storetest.Table[agent.Entry]{})
			m := newMind(p, memory, b)
			m.AddExchange("c", agent.Exchange{Heard: "hello", Said: "Hello."}, noon)
			var held, got []agent.Reply
			d, stop := drafting(t, m, "do it", &held)
			time.Sleep(time.Second)
			synctest.Wait()
			if want := map[time.Duration]int{0: 4, 300 * time.Millisecond: 3}[wait]; len(held) != want {
				t.Errorf("%d replies were held back, want %d", len(held), want)
			}
			if len(p.events) > 0 || b.effects > 0 || len(slices.Collect(memory.All(noon))) > 0 {
				t.Errorf("before the end: events %v, %d effects", p.events, b.effects)
			}
			must.Succeed(t, m.AnswerDrafted(t.Context(), d, agent.Turn{Conversation: "c", Text: "do it", Now: noon}, func(r agent.Reply) error {
				got = append(got, r)
				return nil
			}))
			stop()
			want := []agent.Reply{joy, agent.Say{Text: "Well."}, agent.ToolStatus{}, agent.Say{Text: "Done."}, agent.Done{End: agent.Continue}}
			if !reflect.DeepEqual(got, want) || b.effects != 1 || len(b.heard) != 1 || len(b.heard[0].History) != 1 {
				t.Errorf("replies %v, %d effects, heard %v", got, b.effects, b.heard)
			}
			wanted := []event.Event{event.ThinkingStarted{Brain: "b"}, event.Emotion{Name: "happy", Emoji: "😊"}, event.Thought{Text: "?"}, event.ToolStatus{}}
			if !reflect.DeepEqual(p.events, wanted) || len(slices.Collect(memory.All(noon))) != 1 {
				t.Errorf("published %v", p.events)
			}
		})
	}
}

func emotion(emoji string) agent.Emotion {
	e, _ := agent.SplitEmotion(emoji)
	return e
}

// TestADraftForAnotherAnswerIsDiscarded: the brain is asked again if the text, the language or the conversation has
// changed. The draft has no effects.
func TestADraftForAnotherAnswerIsDiscarded(t *testing.T) {
	for name, change := range map[string]func(*agent.Mind, *agent.Turn){
		"the text":         func(_ *agent.Mind, t *agent.Turn) { t.Text = "do it not" },
		"the language":     func(_ *agent.Mind, t *agent.Turn) { t.Language = "de" },
		"the conversation": func(m *agent.Mind, _ *agent.Turn) { m.AddExchange("c", agent.Exchange{Heard: "x"}, noon) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &drafter{brain: brain{replies: []agent.Reply{agent.Say{Text: "Well."}, agent.ToolStatus{}, agent.Done{}}}}
				m := newMind(&published{}, nil, b)
				var held []agent.Reply
				d, stop := drafting(t, m, "do it", &held)
				in := agent.Turn{Conversation: "c", Text: "do it", Now: noon}
				change(m, &in)
				said := 0
				must.Succeed(t, m.AnswerDrafted(t.Context(), d, in, func(agent.Reply) error {
					said++
					return nil
				}))
				stop()
				if said != 3 || b.effects != 1 || len(b.heard) != 2 {
					t.Errorf("%d replies, %d effects, asked %d times", said, b.effects, len(b.heard))
				}
			})
		})
	}
}

// TestADiscardedDraftHasNoEffects: a brain that waits to run a tool ends when the person goes on.
func TestADiscardedDraftHasNoEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &drafter{brain: brain{replies: []agent.Reply{agent.Say{Text: "Well."}, agent.ToolStatus{}}}}
		p := &published{}
		var held []agent.Reply
		_, stop := drafting(t, newMind(p, nil, b), "do it", &held)
		stop()
		if len(held) != 1 || b.effects > 0 || len(p.events) > 0 {
			t.Errorf("held %v, %d effects, published %v", held, b.effects, p.events)
		}
	})
}

// TestNoDraft: brains that do not draft, brains behind the first, and untrusted turns. The answer is as without one.
func TestNoDraft(t *testing.T) {
	replies := []agent.Reply{agent.Say{Text: "Well."}, agent.Done{}}
	plain, drafts := &brain{replies: replies}, &drafter{brain: brain{replies: replies}}
	for name, c := range map[string]struct {
		first     agent.Brain
		untrusted bool
	}{"the first does not": {first: plain}, "untrusted": {drafts, true}} {
		t.Run(name, func(t *testing.T) {
			m := newMind(&published{}, nil, c.first, drafts)
			in := agent.Turn{Conversation: "c", Text: "do it", Now: noon, Untrusted: c.untrusted}
			d := agent.NewDraft(t.Context(), in, func(r agent.Reply) { t.Errorf("drafted %v", r) })
			m.Write(d)
			if got, err := answersTo(t, m, d, in); err != nil || !reflect.DeepEqual(got, replies) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func answersTo(t *testing.T, m *agent.Mind, d *agent.Draft, in agent.Turn) (got []agent.Reply, err error) {
	err = m.AnswerDrafted(t.Context(), d, in, func(r agent.Reply) error {
		got = append(got, r)
		return nil
	})
	return got, err
}

// TestAQuestionOfADraftWaits: it is asked once the draft is the answer.
func TestAQuestionOfADraftWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &drafter{brain: brain{replies: []agent.Reply{agent.Ask{Text: "Really?"}, agent.Done{}}}}
		m := newMind(&published{}, nil, b)
		var held []agent.Reply
		d, stop := drafting(t, m, "do it", &held)
		got, err := answersTo(t, m, d, agent.Turn{Conversation: "c", Text: "do it", Now: noon})
		stop()
		if len(held) > 0 || err != nil || fmt.Sprintf("%T", got[0]) != "agent.Ask" {
			t.Errorf("held %v, then %v, %v", held, got, err)
		}
	})
}

// TestTheFailureOfADraft: if the brain fails in a draft, the next one answers; if the receiver fails, the brain ends.
func TestTheFailureOfADraft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := agent.Turn{Conversation: "c", Text: "do it", Now: noon}
		var held []agent.Reply
		away := &drafter{brain: brain{err: agent.ErrAway}}
		here := &brain{replies: []agent.Reply{agent.Done{}}}
		m := newMind(&published{}, nil, away, here)
		d, stop := drafting(t, m, in.Text, &held)
		if got, err := answersTo(t, m, d, in); err != nil || len(got) != 1 || len(away.heard) != 1 {
			t.Errorf("%v, %v", got, err)
		}
		stop()

		m = newMind(&published{}, nil, &drafter{brain: brain{replies: []agent.Reply{agent.Say{Text: "Well."}, agent.ToolStatus{}}}})
		d, stop = drafting(t, m, in.Text, &held)
		gone := errors.New("gone")
		if err := m.AnswerDrafted(t.Context(), d, in, func(agent.Reply) error { return gone }); !errors.Is(err, gone) {
			t.Error(err)
		}
		stop()
	})
}

// TestACancelledTurnEndsItsDraft: the brain is still thinking when the turn that has taken its draft is cancelled.
func TestACancelledTurnEndsItsDraft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMind(&published{}, nil, &drafter{brain: brain{replies: []agent.Reply{agent.Done{}}, wait: time.Hour}})
		var held []agent.Reply
		d, stop := drafting(t, m, "do it", &held)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := m.AnswerDrafted(ctx, d, agent.Turn{Conversation: "c", Text: "do it", Now: noon}, func(agent.Reply) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		stop()
	})
}
