package device

import (
	"slices"
	"testing"
)

// TestFindHead checks which arguments a head has, and that a tool with another required argument is no head.
func TestFindHead(t *testing.T) {
	tool := func(required []string, arguments ...string) []Tool {
		s := Schema{Properties: map[string]Argument{}, Required: required}
		for _, name := range arguments {
			s.Properties[name] = Argument{Type: "integer"}
		}
		return []Tool{{Name: "self.robot.set_head_angles", Schema: s}}
	}
	for name, c := range map[string]struct {
		tools []Tool
		want  []string // nil if no head is found
	}{
		"both axes required": {tool([]string{"yaw", "pitch"}, "yaw", "pitch", "speed"), []string{"yaw", "pitch"}},
		"both axes optional": {tool(nil, "yaw", "pitch"), []string{"yaw", "pitch"}},
		"yaw alone":          {tool([]string{"pan"}, "pan"), []string{"pan", ""}},
		"more required":      {tool([]string{"yaw", "motor"}, "yaw", "pitch", "motor"), nil},
	} {
		if head, found := FindHead(c.tools); found != (c.want != nil) || !slices.Equal(head.Arguments, c.want) {
			t.Errorf("%s: found %v with %q, want %q", name, found, head.Arguments, c.want)
		}
	}
}
