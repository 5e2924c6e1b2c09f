package device

import (
	"slices"
	"strings"
)

// Control is a tool whose arguments are integers, such as the angles of a head.
type Control struct {
	Tool
	Arguments []string // the tool's spelling of each argument's name; "" for an argument that the tool does not have
}

// FindControl returns the first tool whose name contains all words, that has all arguments as integers and
// that requires no others. words are separated by spaces; the words of a tool's name are separated by dots,
// hyphens and underscores. Each element of arguments lists the names that firmware builds use for one
// argument.
func FindControl(tools []Tool, words string, arguments ...[]string) (Control, bool) {
	for _, t := range tools {
		parts := t.nameParts()
		if slices.ContainsFunc(strings.Fields(words), func(w string) bool { return !slices.Contains(parts, w) }) {
			continue
		}
		c := Control{Tool: t}
		for _, names := range arguments {
			c.Arguments = append(c.Arguments, t.Integer(names...))
		}
		needsMore := slices.ContainsFunc(t.Schema.Required, func(r string) bool { return !slices.Contains(c.Arguments, r) })
		if !needsMore && !slices.Contains(c.Arguments, "") {
			return c, true
		}
	}
	return Control{}, false
}

// Integer returns the first of names that is an integer argument of the tool, in the tool's spelling,
// or "" if no name is. It ignores case.
func (t Tool) Integer(names ...string) string {
	for _, name := range names {
		var matches []string
		for property, a := range t.Schema.Properties {
			if a.Type == "integer" && strings.EqualFold(property, name) {
				matches = append(matches, property)
			}
		}
		if len(matches) > 0 {
			return slices.Min(matches)
		}
	}
	return ""
}

// FindHead returns the tool that turns the head. The elements of its Arguments are yaw and pitch; pitch is
// empty if the tool does not have that axis.
func FindHead(tools []Tool) (Control, bool) {
	yaw, pitch := []string{"yaw", "pan", "x"}, []string{"pitch", "tilt", "y"}
	if head, found := FindControl(tools, "set head", yaw, pitch); found {
		return head, true
	}
	head, found := FindControl(tools, "set head", yaw)
	if found {
		head.Arguments = append(head.Arguments, "")
	}
	return head, found
}

// FindAngles returns the tool that reports the head's position as an object with yaw and pitch.
func FindAngles(tools []Tool) (Control, bool) { return FindControl(tools, "get head angles") }

// FindLights returns the tool that sets all lights to one colour.
func FindLights(tools []Tool) (Control, bool) {
	for _, words := range []string{"set led color", "set all color", "set rgb", "set color", "led set"} {
		if c, found := FindControl(tools, words, []string{"red", "r"}, []string{"green", "g"}, []string{"blue", "b"}); found {
			return c, true
		}
	}
	return Control{}, false
}

// ColourArguments returns the arguments with which the tool sets lights to a colour. colour is red,
// green and blue from 0 to 255, which are scaled to the tool's range.
func (c Control) ColourArguments(colour [3]int) map[string]any {
	arguments := map[string]any{}
	for i, level := range colour {
		maximum := 255
		if m := c.Schema.Properties[c.Arguments[i]].Maximum; m != nil {
			maximum = *m
		}
		arguments[c.Arguments[i]] = level * maximum / 255
	}
	return arguments
}

// Colour returns the colour that a call of the tool with these arguments shows: red, green and blue from 0 to
// 255. It is the inverse of ColourArguments, except for rounding. An argument that is missing or not a number
// counts as 0.
func (c Control) Colour(arguments map[string]any) (colour [3]int) {
	for i := range colour {
		maximum := 255
		if m := c.Schema.Properties[c.Arguments[i]].Maximum; m != nil {
			maximum = max(*m, 1)
		}
		level, _ := parseInteger(arguments[c.Arguments[i]])
		colour[i] = (min(max(level, 0), maximum)*255 + maximum/2) / maximum
	}
	return colour
}

// nameParts returns the words of the tool's name in lower case, without the dots, hyphens and underscores between them.
func (t Tool) nameParts() []string {
	return strings.FieldsFunc(strings.ToLower(t.Name), func(r rune) bool { return r == '.' || r == '_' || r == '-' })
}
