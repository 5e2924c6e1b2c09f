package vccp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"perch/agent/thinker"
	"perch/must"
)

// tides are one skill.
type tides struct{}

func (tides) Exposed() []thinker.Tool {
	return []thinker.Tool{
		{Name: "skill_tide", Description: "High water.", Schema: json.RawMessage(`{"type":"object","properties":{"place":{"type":"string"}}}`)},
		{Name: "skill_odd", Schema: json.RawMessage(`{"type":"array"}`)}, // at which the library panics
	}
}

func (tides) CallExposed(_ context.Context, name string, args json.RawMessage, _ time.Time) (string, error) {
	return fmt.Sprint(name, " ", string(args)), nil
}

func TestModelsHaveSkillsDone(t *testing.T) {
	h := newHarness(t, func(o *Options) { o.Skills = tides{} })
	m := h.model(t)
	list, err := m.ListTools(t.Context(), nil)
	must.Succeed(t, err)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if !slices.Contains(names, "skill_tide") || slices.Contains(names, "skill_odd") {
		t.Errorf("the tools are %v", names)
	}
	if got := m.must("skill_tide", object{"place": "Dover"}); got != `skill_tide {"place":"Dover"}` {
		t.Errorf("it answers %s", got)
	}
}
