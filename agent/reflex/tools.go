package reflex

import (
	"slices"
	"strings"

	"perch/device"
)

// Firmware builds use different names for tools and arguments, so a tool is identified
// by words in its name and by arguments with a matching name and type.

// bodyTool is a tool with its names for the requested arguments, in that order. A name
// is empty if the tool lacks the argument.
type bodyTool struct {
	device.Tool
	argument []string
}

// clamp limits n to the range of the i-th argument.
func (t bodyTool) clamp(i, n int) int {
	a := t.Schema.Properties[t.argument[i]]
	// The firmware's range includes -9999 for "unchanged". The real range is smaller,
	// and the maker advises against both ends of the tilt.
	if strings.Contains(t.argument[i], "pitch") {
		n = min(max(n, 5), 85)
	}
	return a.Clamp(n)
}

// toolFinder searches a robot's tools for a certain one.
type toolFinder func([]device.Tool) (bodyTool, bool)

// levelTool finds the tool that sets the volume or the brightness.
func levelTool(of string) toolFinder {
	return func(tools []device.Tool) (bodyTool, bool) {
		return findIntTool(tools, []string{"set " + of}, []string{of, "level", "value"})
	}
}

func headTool(tools []device.Tool) (bodyTool, bool) {
	t, ok := findIntTool(tools, []string{"set head"}, []string{"yaw", "pan", "x"})
	if ok {
		t.argument = append(t.argument, name(t.Tool, "integer", []string{"pitch", "tilt", "y"}))
	}
	return t, ok
}

func lightTool(tools []device.Tool) (bodyTool, bool) {
	names := []string{"set led color", "set all color", "set rgb", "set color", "led set"}
	return findIntTool(tools, names, []string{"red", "r"}, []string{"green", "g"}, []string{"blue", "b"})
}

// photoTool finds the tool that takes a picture and answers a question about it.
func photoTool(tools []device.Tool) (bodyTool, bool) {
	return findTool("string", tools, []string{"take photo", "take picture"}, []string{"question", "prompt", "query"})
}

// findIntTool is findTool for tools with integer arguments.
func findIntTool(tools []device.Tool, names []string, arguments ...[]string) (bodyTool, bool) {
	return findTool("integer", tools, names, arguments...)
}

// findTool returns the first tool that has all the words of a name, of several in order, and
// all the arguments of that type, each under one of its names. A tool with other required
// arguments, such as the number of a light, does not match.
func findTool(kind string, tools []device.Tool, names []string, arguments ...[]string) (bodyTool, bool) {
	for _, words := range names {
		for _, t := range tools {
			if !hasWords(t.Name, words) {
				continue
			}
			found := bodyTool{Tool: t}
			for _, names := range arguments {
				found.argument = append(found.argument, name(t, kind, names))
			}
			missing := slices.Contains(found.argument, "")
			more := slices.ContainsFunc(t.Schema.Required, func(r string) bool { return !slices.Contains(found.argument, r) })
			if !missing && (!more || len(arguments) == 0) {
				return found, true
			}
		}
	}
	return bodyTool{}, false
}

// hasWords reports whether a tool's name contains all the words.
func hasWords(tool, words string) bool {
	parts := strings.FieldsFunc(strings.ToLower(tool), func(r rune) bool { return r == '.' || r == '_' || r == '-' })
	return !slices.ContainsFunc(strings.Fields(words), func(w string) bool { return !slices.Contains(parts, w) })
}

// name returns the tool's name for an argument of that type, or "".
func name(t device.Tool, kind string, names []string) string {
	for own, a := range t.Schema.Properties {
		if a.Type == kind && slices.Contains(names, strings.ToLower(own)) {
			return own
		}
	}
	return ""
}
