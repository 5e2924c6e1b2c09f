package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/event"
)

// TestAnswerText tests that AnswerText closes questions at once, joins the sentences, and
// passes on no reply after its context has ended.
func TestAnswerText(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var closed []agent.Outcome
	ask := agent.Ask{ID: "1", Text: "May I?", Within: time.Minute, Answer: func(a agent.Answer) { closed = append(closed, a.Outcome) }}
	m := brainFunc(func(_ context.Context, _ agent.Turn, out func(agent.Reply) error) error {
		for _, r := range []agent.Reply{felt("happy", 1), agent.Say{Text: "Well."}, felt("sad", 1), ask, agent.Say{Text: "No."}} {
			if err := out(r); err != nil {
				return err
			}
		}
		cancel()
		return errors.Join(out(ask), out(agent.Say{Text: "Late."}))
	})
	passed := 0
	said, err := agent.AnswerText(ctx, answering{m}, agent.Turn{}, func(agent.Reply) error { passed++; return nil })
	if said.Text != "Well. No." || said.Face.Name != "happy" || passed != 5 || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %d replies passed on, %v", said, passed, err)
	}
	if len(closed) != 2 || closed[0] != agent.AnswerClosed || closed[1] != agent.AnswerClosed {
		t.Errorf("the questions were answered with %v", closed)
	}
}

// answering answers turns with one brain.
type answering struct{ agent.Brain }

func (a answering) Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	return a.Think(ctx, t, out)
}

func TestConversationOf(t *testing.T) {
	for name, want := range map[string]string{"": "x:", "a.B_9:-": "x:a.B_9:-"} {
		if got := agent.ConversationOf("x", name); got != want {
			t.Errorf("%q is %q, not %q", name, got, want)
		}
	}
	for _, name := range []string{"two words", strings.Repeat("a", 65), "ü", "a\n"} {
		if got := agent.ConversationOf("x", name); len(got) != len("x:")+32 || got != agent.ConversationOf("x", name) {
			t.Errorf("%q is %q", name, got)
		}
	}
}

// TestTheGesturesOfCues tests which values of cues are gestures, and the form of their names.
func TestTheGesturesOfCues(t *testing.T) {
	for value, want := range map[string]string{"wave": "wave", " Wave": "wave", "my_clip-2": "my_clip-2",
		strings.Repeat("a", 40): strings.Repeat("a", 40),
		strings.Repeat("a", 41): "", "": "", "sit down": "", "wave\n": "wave", "wäve": "", "../x": ""} {
		g, is := agent.Cue{Kind: "anim", Value: value}.Gesture()
		if is != (want != "") || is && g != (event.Gesture{Name: want, By: event.ByModel}) {
			t.Errorf("%q is %+v, %t", value, g, is)
		}
	}
	if _, is := (agent.Cue{Kind: "pause", Value: "wave"}).Gesture(); is {
		t.Error("a pause is a gesture")
	}
}
