package device

import (
	"cmp"
	"fmt"
	"strings"

	"perch/limit"
)

// ModelNames maps tool names to the form that language models accept: letters,
// digits, hyphens and underscores. "self.robot.set_head_angles" becomes
// "self_robot_set_head_angles".
type ModelNames struct {
	safe, own map[string]string
}

// NewModelNames names the tools in order; of equal names the later gets a number.
func NewModelNames(tools []Tool) ModelNames {
	n := ModelNames{safe: make(map[string]string, len(tools)), own: make(map[string]string, len(tools))}
	for _, t := range tools {
		if _, twice := n.safe[t.Name]; twice {
			continue
		}
		name := modelName(t.Name, "")
		for i := 2; ; i++ {
			if _, taken := n.own[name]; !taken {
				break
			}
			name = modelName(t.Name, fmt.Sprintf("_%d", i))
		}
		n.safe[t.Name], n.own[name] = name, t.Name
	}
	return n
}

func modelName(own, suffix string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, own)
	name = cmp.Or(name, "tool")
	return name[:min(len(name), limit.Word-len(suffix))] + suffix
}

// Safe returns the model's name of a tool, or "" if the tool is unknown.
func (n ModelNames) Safe(own string) string { return n.safe[own] }

// Own returns the tool that a model means, by the model's name or the tool's own.
func (n ModelNames) Own(safe string) (string, bool) {
	if own, ok := n.own[safe]; ok {
		return own, true
	}
	_, ok := n.safe[safe]
	return safe, ok
}
