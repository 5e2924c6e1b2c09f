package thinker_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"perch/agent"
	"perch/agent/thinker"
)

// tides are skills with two tools, one of which has the name of one of the appliance's.
type tides struct{}

func (tides) Block(t agent.Turn) string { return `<skill name="tide">Ask for the tide.</skill>` }

func (tides) Tools(agent.Turn) []thinker.Tool {
	return []thinker.Tool{{Name: "tide", Schema: json.RawMessage(`{}`)}, {Name: "recall", Schema: json.RawMessage(`{}`)}}
}

func (tides) Run(_ context.Context, t agent.Turn, name string, args json.RawMessage) (string, error) {
	return t.Conversation + " " + name + " " + string(args), nil
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
