package device

import (
	"encoding/json"
	"slices"
)

// Tool is one thing a robot can do, as its MCP server lists it. Builds
// differ: names, arguments and ranges are the robot's own.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Schema      Schema `json:"inputSchema"`
	// UserOnly is a tool for a robot's owner, such as its reboot. The firmware
	// only lists such tools apart; it runs them for anybody.
	UserOnly bool `json:"userOnly,omitempty"`
}

// Schema is as much of JSON Schema as the firmware uses for arguments.
type Schema struct {
	Type       string              `json:"type,omitempty"`
	Properties map[string]Argument `json:"properties"`
	Required   []string            `json:"required,omitempty"`
}

// Argument is one argument of a tool: boolean, integer or string.
type Argument struct {
	Type    string          `json:"type"`
	Default json.RawMessage `json:"default,omitempty"`
	Minimum *int            `json:"minimum,omitempty"`
	Maximum *int            `json:"maximum,omitempty"`
}

// Clamp brings n into the argument's range.
func (a Argument) Clamp(n int) int {
	if a.Minimum != nil {
		n = max(n, *a.Minimum)
	}
	if a.Maximum != nil {
		n = min(n, *a.Maximum)
	}
	return n
}

// Result is what a tool answered.
type Result struct {
	Text     string
	Pictures []Picture
}

// Picture is an image as a robot's camera or screen made it.
type Picture struct {
	Type string // "image/jpeg"
	Data []byte
}

// FindTool returns the tool of that name.
func FindTool(tools []Tool, name string) (Tool, bool) {
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return tools[i], true
}
