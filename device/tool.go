package device

import (
	"encoding/json"
	"slices"
)

// Tool is a tool of a robot's MCP server. Names, arguments and ranges differ between firmware builds.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Schema      Schema `json:"inputSchema"`
	// UserOnly marks a tool for the robot's owner, such as a reboot. The firmware lists these tools
	// separately, but runs them for every caller.
	UserOnly bool `json:"userOnly,omitempty"`
}

// Schema is the part of JSON Schema that the firmware uses for arguments.
type Schema struct {
	Type       string              `json:"type,omitempty"`
	Properties map[string]Argument `json:"properties"`
	Required   []string            `json:"required,omitempty"`
}

// Argument is the schema of an argument.
type Argument struct {
	Type    string          `json:"type"` // "boolean", "integer" or "string"
	Default json.RawMessage `json:"default,omitempty"`
	Minimum *int            `json:"minimum,omitempty"`
	Maximum *int            `json:"maximum,omitempty"`
}

// Clamp returns n clamped to the argument's range.
func (a Argument) Clamp(n int) int {
	if a.Minimum != nil {
		n = max(n, *a.Minimum)
	}
	if a.Maximum != nil {
		n = min(n, *a.Maximum)
	}
	return n
}

// Result is the result of a tool call.
type Result struct {
	Text     string
	Pictures []Picture
}

// Picture is an image from a robot's camera or screen.
type Picture struct {
	Type string // media type, such as "image/jpeg"
	Data []byte
}

// FindTool returns the tool with a name, or false if tools has no such tool.
func FindTool(tools []Tool, name string) (Tool, bool) {
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return tools[i], true
}
