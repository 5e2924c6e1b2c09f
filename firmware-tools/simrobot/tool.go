package simrobot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"perch/device"
)

// tool is an MCP tool of the robot. Either run or slow is set.
type tool struct {
	name, description string
	arguments         []argument
	userOnly          bool // the tool is for the user, not for models: the server must ask explicitly to have it listed

	run func(s *session, now time.Time, v values) (string, error)
	// slow runs a tool that takes time, on another goroutine. As in the firmware the tool blocks the
	// main loop, but not the sound.
	slow func(ctx context.Context, r *Robot, v values) (string, error)
}

// argument is an argument of a tool, a Property in the firmware.
type argument struct {
	name     string
	kind     string // "boolean", "integer" or "string"
	fallback string // default value as JSON; empty if the argument is required
	limits   []int  // minimum and maximum of an integer; nil if unlimited
}

// integer returns an integer argument.
func integer(name, fallback string, limits ...int) argument {
	return argument{name, "integer", fallback, limits}
}

// text returns a string argument.
func text(name, fallback string) argument { return argument{name, "string", fallback, nil} }

// boolean returns a boolean argument.
func boolean(name, fallback string) argument { return argument{name, "boolean", fallback, nil} }

// failure is an error with the text of the firmware's own message.
type failure string

// Error implements error.
func (f failure) Error() string { return string(f) }

// findTool returns the tool with the given name.
func findTool(tools []tool, name string) (tool, bool) {
	i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name })
	if i < 0 {
		return tool{}, false
	}
	return tools[i], true
}

// json returns the tool's entry in the list of tools, with keys in the firmware's order.
func (t tool) json() string {
	var properties, required []string
	for _, a := range t.arguments {
		p := `{"type":"` + a.kind + `"`
		if a.fallback != "" {
			p += `,"default":` + a.fallback
		} else {
			required = append(required, quote(a.name))
		}
		if a.limits != nil {
			p += fmt.Sprintf(`,"minimum":%d,"maximum":%d`, a.limits[0], a.limits[1])
		}
		properties = append(properties, quote(a.name)+":"+p+"}")
	}
	text := `{"name":` + quote(t.name) + `,"description":` + quote(t.description) +
		`,"inputSchema":{"type":"object","properties":{` + strings.Join(properties, ",") + `}`
	if required != nil {
		text += `,"required":[` + strings.Join(required, ",") + `]`
	}
	text += `}`
	if t.userOnly {
		text += `,"annotations":{"audience":["user"]}`
	}
	return text + `}`
}

// bind returns the values of the tool's arguments in a call. As in the firmware, names are
// compared without case, a value of another type counts as missing, and a missing value is
// replaced by the argument's default. A missing value without a default and an integer outside
// the argument's limits are errors.
func (t tool) bind(call object) (values, error) {
	v := values{}
	for _, a := range t.arguments {
		raw := call.lookup(a.name)
		if !a.fits(raw) {
			raw = json.RawMessage(a.fallback)
		}
		if len(raw) == 0 {
			return nil, failure("Missing valid argument: " + a.name)
		}
		if n, isNumber := asNumber(raw); isNumber && a.limits != nil {
			switch {
			case n < a.limits[0]:
				return nil, failure("Value is below minimum allowed: " + strconv.Itoa(a.limits[0]))
			case n > a.limits[1]:
				return nil, failure("Value exceeds maximum allowed: " + strconv.Itoa(a.limits[1]))
			}
		}
		v[a.name] = raw
	}
	return v, nil
}

// fits reports whether a JSON value has the argument's type.
func (a argument) fits(raw json.RawMessage) bool {
	switch a.kind {
	case "boolean":
		return string(raw) == "true" || string(raw) == "false"
	case "integer":
		_, ok := asNumber(raw)
		return ok
	}
	_, ok := asString(raw)
	return ok
}

// values are the values of arguments by name. Each has the type of its argument.
type values map[string]json.RawMessage

// int returns the value of an integer argument.
func (v values) int(name string) int {
	n, _ := asNumber(v[name])
	return n
}

// text returns the value of a string argument.
func (v values) text(name string) string {
	s, _ := asString(v[name])
	return s
}

// forkTool returns a simulated tool of Options.MoreTools. A call with valid arguments always returns
// true. An optional argument without a default gets the default false, 0 or "".
func forkTool(d device.Tool) tool {
	t := tool{name: d.Name, description: d.Description, run: acceptCall}
	for name, a := range d.Schema.Properties {
		arg := argument{name: name, kind: a.Type, fallback: string(a.Default)}
		if a.Minimum != nil && a.Maximum != nil {
			arg.limits = []int{*a.Minimum, *a.Maximum}
		}
		if arg.fallback == "" && !slices.Contains(d.Schema.Required, name) {
			arg.fallback = cmp.Or(map[string]string{"boolean": "false", "integer": "0"}[a.Type], `""`)
		}
		t.arguments = append(t.arguments, arg)
	}
	slices.SortFunc(t.arguments, func(a, b argument) int { return strings.Compare(a.name, b.name) })
	return t
}
