package thinker

import (
	"context"
	"encoding/json"
	"slices"

	"perch/agent"
)

// Skills are additional abilities of characters. Each character may have different skills, so
// every method has the turn as a parameter.
type Skills interface {
	// Block returns the part of the prompt about the skills; it may be empty.
	Block(t agent.Turn) string
	// Tools returns the tools of the skills. It does not block.
	Tools(t agent.Turn) []Tool
	// Run runs the tool with this name. It returns the result for the model, and a text that is
	// spoken at once, which may be empty.
	Run(ctx context.Context, t agent.Turn, name string, args json.RawMessage) (result, speech string, err error)
}

// withSkills returns the tools of skills, followed by the other tools. A skill's tool replaces
// another tool with the same name, because the owner has installed the skill on purpose.
func (k *Brain) withSkills(t agent.Turn, hooks turnHooks, others []turnTool) []turnTool {
	if k.Skills == nil {
		return others
	}
	tools := k.Skills.Tools(t)
	all := make([]turnTool, 0, len(tools)+len(others))
	for _, tool := range tools {
		all = append(all, turnTool{Tool: tool, together: true, private: true, run: func(ctx context.Context, args json.RawMessage) (string, error) {
			return k.runSkill(ctx, t, hooks, tool.Name, args)
		}})
	}
	return append(all, slices.DeleteFunc(others, func(o turnTool) bool {
		return slices.ContainsFunc(tools, func(s Tool) bool { return s.Name == o.Name })
	})...)
}

// runSkill runs a skill's tool, and speaks the speech that Skills.Run has returned, if replies can be sent. The result
// tells the model what was spoken.
func (k *Brain) runSkill(ctx context.Context, t agent.Turn, hooks turnHooks, name string, args json.RawMessage) (string, error) {
	result, speech, err := k.Skills.Run(ctx, t, name, args)
	sentences := sayReplies(speech)
	if err != nil || len(sentences) == 0 || hooks.reply == nil {
		return result, err
	}
	if err := hooks.reply(sentences...); err != nil {
		return "", err
	}
	told := "Already said to the person; do not say it again: " + speech
	if result != speech {
		told += "\n" + result
	}
	return told, nil
}

// skilled returns the part of the prompt about a turn's skills.
func (k *Brain) skilled(t agent.Turn) string {
	if k.Skills == nil {
		return ""
	}
	return k.Skills.Block(t)
}
