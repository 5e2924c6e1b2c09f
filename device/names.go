package device

import (
	"cmp"
	"fmt"
	"strings"

	"perch/limit"
)

// ModelNames maps names of tools to names that language models accept, which consist of letters,
// digits, hyphens and underscores. "self.robot.set_head_angles" becomes
// "self_robot_set_head_angles".
type ModelNames struct {
	safe map[string]string // name for models; key: the tool's name
	own  map[string]string // the tool's name; key: name for models
}

// NewModelNames returns the names for a list of tools. If two tools would have the same name for models, it
// adds a number to the name of the later one.
func NewModelNames(tools []Tool) ModelNames {
	n := ModelNames{safe: make(map[string]string, len(tools)), own: make(map[string]string, len(tools))}
	for _, t := range tools {
		if _, exists := n.safe[t.Name]; exists {
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

// modelName returns a tool's name in the form that models accept, with a suffix. The result has at most
// limit.Word bytes.
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

// Safe returns the name of a tool for models, or "" if there is no such tool.
func (n ModelNames) Safe(own string) string { return n.safe[own] }

// Own returns the tool's name for a name that a model has sent. It accepts names for models and the tools'
// own names, and returns false for all others.
func (n ModelNames) Own(safe string) (string, bool) {
	if own, ok := n.own[safe]; ok {
		return own, true
	}
	_, ok := n.safe[safe]
	return safe, ok
}
