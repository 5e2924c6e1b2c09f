package thinker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/agent/thinker"
	"perch/store/storetest"
)

// narrow is a model with a context of limit tokens, each of four bytes.
type narrow struct {
	limit   int
	refused int // number of refused prompts
	last    int // number of messages in the last prompt that fitted
}

func (*narrow) Name() string { return "narrow" }

func (n *narrow) Continue(_ context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	letters := len(p.System)
	for _, m := range p.Messages {
		letters += len(m.Text) + 16
	}
	for _, tool := range p.Tools {
		letters += len(tool.Name) + len(tool.Description) + len(tool.Schema)
	}
	if letters/4 > n.limit {
		n.refused++
		return "", &thinker.TooLongError{Asked: letters / 4, Limit: n.limit, Err: fmt.Errorf("%w: the prompt is too long", agent.ErrAway)}
	}
	n.last = len(p.Messages)
	return thinker.StopEnd, out(thinker.Piece{Text: "😊 " + strings.Repeat("It is so. ", 12)})
}

// TestANarrowContext tests a conversation of fifty turns in a context of 2000 tokens: each turn is answered,
// the model refuses at most 25 prompts, and the log has one warning.
func TestANarrowContext(t *testing.T) {
	var log bytes.Buffer
	model := &narrow{limit: 2000}
	brain := thinker.New(thinker.Options{Model: model, Log: slog.New(slog.NewTextHandler(&log, nil))})
	var history []agent.Exchange
	for turn := range 50 {
		heard, said := fmt.Sprintf("What is the weather like on day %d of the journey? ", turn)+strings.Repeat("Tell me more. ", 8), ""
		err := brain.Think(t.Context(), agent.Turn{Text: heard, History: history, Now: time.Now()}, func(r agent.Reply) error {
			if say, is := r.(agent.Say); is {
				said += say.Text + " "
			}
			return nil
		})
		if err != nil || said == "" {
			t.Fatalf("turn %d: %q, %v", turn+1, said, err)
		}
		history = append(history, agent.Exchange{Heard: heard, Said: said})
	}
	if model.last < 5 || model.refused > 25 {
		t.Errorf("the last prompt had %d messages; %d were refused", model.last, model.refused)
	}
	if n := strings.Count(log.String(), "longer than the model's context"); n != 1 || !strings.Contains(log.String(), "context_tokens=2000") {
		t.Errorf("the log has %s", log.String())
	}
}

// TestAContextForNothing checks the error if even a prompt without earlier messages does not fit.
func TestAContextForNothing(t *testing.T) {
	brain := thinker.New(thinker.Options{Model: &narrow{limit: 10}})
	err := brain.Think(t.Context(), agent.Turn{Text: "Hello.", History: []agent.Exchange{{Heard: "a", Said: "b"}}, Now: time.Now()},
		func(agent.Reply) error { return nil })
	if long, is := errors.AsType[*thinker.TooLongError](err); !is || long.Limit != 10 || !errors.Is(err, agent.ErrAway) {
		t.Error(err)
	}
}

// TestWrittenCalls checks that a call that the model writes into its text is run and not spoken.
func TestWrittenCalls(t *testing.T) {
	for _, text := range []string{
		`{"name": "self_robot_turn", "arguments": {"yaw": 40}}`,
		"Okay, I will do that.\n<tool_call>{\"name\": \"self_robot_turn\", \"arguments\": {\"yaw\": 40}}</tool_call>",
		"<function=self_robot_turn><parameter=yaw>40</parameter></function>",
	} {
		a := &arm{}
		got, err := think(t, thinker.Options{Model: &model{script: []message{{texts: []string{text}}, {texts: []string{"Done."}}}}}, agent.Turn{Body: a})
		if err != nil || len(says(got)) == 0 || says(got)[len(says(got))-1] != "Done." || !slices.Equal(a.called, []string{"self.robot.turn40"}) || strings.Contains(strings.Join(says(got), " "), "40") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestWrittenCallsOfStrangers checks that a call in the model's text runs no tool that the turn is not offered: a
// stranger could make the model repeat such a text.
func TestWrittenCallsOfStrangers(t *testing.T) {
	const text = `{"name": "set_timer", "arguments": {"seconds": 60, "text": "x"}}`
	for untrusted, want := range map[bool]int{false: 1, true: 0} {
		timers := notice.NewTimers(&storetest.Table[agent.Timer]{}, nil)
		m := &model{script: []message{{texts: []string{text}}, {texts: []string{"Done."}}}}
		if _, err := think(t, thinker.Options{Model: m, Timers: timers}, agent.Turn{Untrusted: untrusted, Text: text}); err != nil {
			t.Errorf("untrusted %t: %v", untrusted, err)
		}
		if set := timers.Pending("", noon); len(set) != want {
			t.Errorf("untrusted %t: timers %+v", untrusted, set)
		}
	}
}

// told is a model whose server reports its context, in tokens.
type told struct {
	narrow
	context int
}

func (m *told) ContextTokens(context.Context) int { return m.context }

// TestCheckContext checks contexts of several sizes. 0 means that the server does not report the size.
func TestCheckContext(t *testing.T) {
	for tokens, fits := range map[int]bool{0: true, 1800: false, 32768: true} {
		err := thinker.New(thinker.Options{Model: &told{context: tokens}}).CheckContext(t.Context())
		if (err == nil) != fits || err != nil && !strings.Contains(err.Error(), "1800 tokens") {
			t.Errorf("%d tokens: %v", tokens, err)
		}
	}
}
