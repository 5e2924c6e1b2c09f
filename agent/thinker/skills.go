package thinker

import (
	"context"
	"encoding/json"
	"slices"

	"perch/agent"
)

// Skills are what the characters know how to do beside the appliance's tools. They are
// asked for each turn, because each character has its own.
type Skills interface {
	// Block is what the model is told of them; empty is nothing.
	Block(t agent.Turn) string
	// Tools are those of a turn. It does not block.
	Tools(t agent.Turn) []Tool
	// Run runs one of Tools.
	Run(ctx context.Context, t agent.Turn, name string, args json.RawMessage) (string, error)
}

// withSkills puts the tools of skills before all others, of which those of the same
// names give way: an owner has put the skill there on purpose.
func (k *Brain) withSkills(t agent.Turn, others []turnTool) []turnTool {
	if k.Skills == nil {
		return others
	}
	tools := k.Skills.Tools(t)
	all := make([]turnTool, 0, len(tools)+len(others))
	for _, tool := range tools {
		all = append(all, turnTool{Tool: tool, together: true, run: func(ctx context.Context, args json.RawMessage) (string, error) {
			return k.Skills.Run(ctx, t, tool.Name, args)
		}})
	}
	return append(all, slices.DeleteFunc(others, func(o turnTool) bool {
		return slices.ContainsFunc(tools, func(s Tool) bool { return s.Name == o.Name })
	})...)
}

// skilled is what the model is told of a turn's skills.
func (k *Brain) skilled(t agent.Turn) string {
	if k.Skills == nil {
		return ""
	}
	return k.Skills.Block(t)
}
