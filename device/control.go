package device

import (
	"slices"
	"strings"
)

// Control is a tool that sets something by whole numbers, with the tool's names of the
// requested arguments. A name is empty if the tool lacks that argument.
type Control struct {
	Tool
	Arguments []string
}

// FindControl returns the first tool with these words in its name that has a whole
// number under one of the names of each argument, and no other required argument.
// Firmware builds differ in both.
func FindControl(tools []Tool, words string, arguments ...[]string) (Control, bool) {
	for _, t := range tools {
		parts := strings.FieldsFunc(strings.ToLower(t.Name), func(r rune) bool { return r == '.' || r == '_' || r == '-' })
		if slices.ContainsFunc(strings.Fields(words), func(w string) bool { return !slices.Contains(parts, w) }) {
			continue
		}
		c := Control{Tool: t}
		for _, names := range arguments {
			c.Arguments = append(c.Arguments, t.Integer(names...))
		}
		more := slices.ContainsFunc(t.Schema.Required, func(r string) bool { return !slices.Contains(c.Arguments, r) })
		if !more && !slices.Contains(c.Arguments, "") {
			return c, true
		}
	}
	return Control{}, false
}

// Integer returns the tool's spelling of the first of names that is a whole number
// argument, ignoring case, or "" if there is no such argument.
func (t Tool) Integer(names ...string) string {
	for _, name := range names {
		var own []string
		for given, a := range t.Schema.Properties {
			if a.Type == "integer" && strings.EqualFold(given, name) {
				own = append(own, given)
			}
		}
		if len(own) > 0 {
			return slices.Min(own)
		}
	}
	return ""
}

// FindHead returns the tool that turns the head. Its arguments are yaw, and pitch if the
// head has that axis.
func FindHead(tools []Tool) (Control, bool) {
	head, found := FindControl(tools, "set head", []string{"yaw", "pan", "x"})
	if found {
		head.Arguments = append(head.Arguments, head.Integer("pitch", "tilt", "y"))
	}
	return head, found
}

// FindAngles returns the tool that reports the head's position, as {"yaw","pitch"}.
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

// Shine returns the arguments that set lights to a colour: red, green and blue from 0
// to 255, each clamped to the tool's range.
func (c Control) Shine(colour [3]int) map[string]any {
	arguments := map[string]any{}
	for i, level := range colour {
		most := 255
		if m := c.Schema.Properties[c.Arguments[i]].Maximum; m != nil {
			most = *m
		}
		arguments[c.Arguments[i]] = level * most / 255
	}
	return arguments
}
