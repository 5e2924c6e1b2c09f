package reflex

import (
	"slices"
	"strings"

	"perch/device"
)

// bodyTool is a tool of a robot. Firmware builds use different names for tools and their
// arguments, so a tool is found by words in its name and by the names and types of its
// arguments.
type bodyTool struct {
	device.Tool
	// argument holds the tool's own names for the arguments that were searched for, in the
	// order of the search; "" means that the tool lacks an optional argument.
	argument []string
}

// clamp limits n to the range of the i-th argument.
func (t bodyTool) clamp(i, n int) int {
	a := t.Schema.Properties[t.argument[i]]
	// The tool's range for the pitch also allows -9999, which means "unchanged". The maker
	// advises against both ends of the real range.
	if strings.Contains(t.argument[i], "pitch") {
		n = min(max(n, 5), 85)
	}
	return a.Clamp(n)
}

// toolFinder finds a certain tool among the tools of a robot.
type toolFinder func([]device.Tool) (tool bodyTool, ok bool)

// levelTool returns a finder of the tool that sets a level: "volume" or "brightness".
func levelTool(level string) toolFinder {
	return func(tools []device.Tool) (bodyTool, bool) {
		return findIntTool(tools, []string{"set " + level}, []string{level, "level", "value"})
	}
}

// headTool finds the tool that turns the head. Its arguments are yaw and, optionally, pitch.
func headTool(tools []device.Tool) (bodyTool, bool) {
	t, ok := findIntTool(tools, []string{"set head"}, []string{"yaw", "pan", "x"})
	if ok {
		t.argument = append(t.argument, argumentName(t.Tool, "integer", []string{"pitch", "tilt", "y"}))
	}
	return t, ok
}

// lightTool finds the tool that sets the colour of the lights. Its arguments are red, green
// and blue.
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

// findTool returns the first tool whose name contains all words of names[0], or else of the
// next element, and which has an argument of the JSON type kind for each element of arguments.
// Such an element lists the possible names of one argument. A tool that requires further
// arguments, such as the number of a light, does not match. If arguments is empty, the arguments
// of the tool are not checked.
func findTool(kind string, tools []device.Tool, names []string, arguments ...[]string) (bodyTool, bool) {
	for _, words := range names {
		for _, t := range tools {
			if !hasWords(t.Name, words) {
				continue
			}
			found := bodyTool{Tool: t}
			for _, names := range arguments {
				found.argument = append(found.argument, argumentName(t, kind, names))
			}
			lacksArgument := slices.Contains(found.argument, "")
			requiresOther := slices.ContainsFunc(t.Schema.Required, func(r string) bool { return !slices.Contains(found.argument, r) })
			if !lacksArgument && (!requiresOther || len(arguments) == 0) {
				return found, true
			}
		}
	}
	return bodyTool{}, false
}

// hasWords reports whether the name of a tool contains all words in words.
func hasWords(tool, words string) bool {
	parts := strings.FieldsFunc(strings.ToLower(tool), func(r rune) bool { return r == '.' || r == '_' || r == '-' })
	return !slices.ContainsFunc(strings.Fields(words), func(w string) bool { return !slices.Contains(parts, w) })
}

// argumentName returns the name of the tool's argument that has this JSON type and one of
// these names, ignoring case, or "".
func argumentName(t device.Tool, kind string, names []string) string {
	for name, a := range t.Schema.Properties {
		if a.Type == kind && slices.Contains(names, strings.ToLower(name)) {
			return name
		}
	}
	return ""
}
