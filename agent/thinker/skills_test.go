package thinker_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"perch/agent"
	"perch/agent/thinker"
	"perch/must"
)

// tides implements Skills with two tools. One of them has the name of a tool of the appliance.
type tides struct{}

func (tides) Block(t agent.Turn) string { return `<skill name="tide">Ask for the tide.</skill>` }

func (tides) Tools(agent.Turn) []thinker.Tool {
	return []thinker.Tool{{Name: "tide", Schema: json.RawMessage(`{}`)}, {Name: "recall", Schema: json.RawMessage(`{}`)}}
}

func (tides) Run(_ context.Context, t agent.Turn, name string, args json.RawMessage) (result, speech string, err error) {
	if name == "tide" {
		return "six", "🌊 High water is at six. Mind your feet.", nil
	}
	return t.Conversation + " " + name + " " + string(args), "", nil
}

// TestASkillSpeaksForItself checks that the speech of a skill is spoken before the model continues, and that
// the result tells the model. If no replies can be sent, the model receives only the result.
func TestASkillSpeaksForItself(t *testing.T) {
	m := &model{script: []message{{texts: []string{"Let me see."}, calls: []thinker.ToolCall{call("1", "tide", "{}")}}, {texts: []string{"Anything else?"}}}}
	k := thinker.New(thinker.Options{Model: m, Skills: tides{}})
	var said []string
	must.Succeed(t, k.Think(t.Context(), agent.Turn{Text: "go"}, func(r agent.Reply) error {
		if s, is := r.(agent.Say); is {
			said = append(said, s.Text)
		}
		return nil
	}))
	if got, want := strings.Join(said, "|"), "Let me see.|High water is at six.|Mind your feet.|Anything else?"; got != want {
		t.Errorf("it says %q, not %q", got, want)
	}
	last := m.asked[1].Messages[len(m.asked[1].Messages)-1]
	if want := "Already said to the person; do not say it again: 🌊 High water is at six. Mind your feet.\nsix"; last.Text != want {
		t.Errorf("the model is told %q, not %q", last.Text, want)
	}
	silent := k.TurnTools(t.Context(), agent.Turn{}, nil)
	if got, err := silent.Call(t.Context(), "tide", json.RawMessage(`{}`)); err != nil || got != "six" {
		t.Errorf("without replies the tool answers %q, %v", got, err)
	}
}

func TestToolsOfSkillsComeFirst(t *testing.T) {
	k := thinker.New(thinker.Options{Skills: tides{}, Memory: &agent.Memory{}})
	u := k.TurnTools(t.Context(), agent.Turn{Conversation: "kitchen"}, nil)
	var names []string
	for _, tool := range u.Offered() {
		names = append(names, tool.Name)
	}
	if len(names) < 3 || !slices.Equal(names[:2], []string{"tide", "recall"}) || slices.Contains(names[2:], "recall") {
		t.Errorf("the tools are %v", names)
	}
	if got, err := u.Call(t.Context(), "recall", json.RawMessage(`{"a":1}`)); err != nil || got != `kitchen recall {"a":1}` {
		t.Errorf("the tool answers %q, %v", got, err)
	}
	m := &model{script: []message{{texts: []string{"Hi."}}}}
	answered(t, thinker.Options{Model: m, Skills: tides{}}, agent.Turn{})
	if got := m.asked[0].System; !strings.Contains(got, "Ask for the tide.") {
		t.Errorf("the prompt is %s", got)
	}
}
