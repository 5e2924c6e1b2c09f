package reflex

import (
	"slices"
	"strings"

	"perch/device"
)

// photoTool finds the tool that takes a picture and answers a question about it. The tool has
// no required argument other than the question.
func photoTool(tools []device.Tool) (device.Control, bool) {
	for _, t := range tools {
		name := strings.ToLower(t.Name)
		if !strings.Contains(name, "take") || !strings.Contains(name, "photo") && !strings.Contains(name, "picture") {
			continue
		}
		for argument, a := range t.Schema.Properties {
			isQuestion := a.Type == "string" && slices.Contains([]string{"question", "prompt", "query"}, strings.ToLower(argument))
			if isQuestion && !slices.ContainsFunc(t.Schema.Required, func(r string) bool { return r != argument }) {
				return device.Control{Tool: t, Arguments: []string{argument}}, true
			}
		}
	}
	return device.Control{}, false
}

// clamp limits n to the range of the tool's i-th argument.
func clamp(t device.Control, i, n int) int {
	name := t.Arguments[i]
	if strings.Contains(name, "pitch") { // the range of the firmware's tool is wider than the head's
		n = min(max(n, device.MinHeadPitch), device.MaxHeadPitch)
	}
	return t.Schema.Properties[name].Clamp(n)
}
