package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ErrArguments is wrapped by Fit when the arguments do not match the tool's schema.
var ErrArguments = errors.New("the tool does not take these arguments")

// Fit returns arguments as the tool's schema requires them: names in the tool's
// spelling, numbers whole, an axis that is to stay as it is omitted, and heads and
// lights clamped to their range. Anything else that the robot would refuse, or
// silently ignore as it does an unknown name, is an error that wraps ErrArguments
// and lists the tool's arguments.
func (t Tool) Fit(arguments map[string]any) (map[string]any, error) {
	fitted := make(map[string]any, len(arguments))
	for _, given := range slices.Sorted(maps.Keys(arguments)) {
		value := arguments[given]
		name, known := t.argument(given)
		switch {
		case value == nil:
			continue // null is how some models leave an argument out
		case !known:
			return nil, fmt.Errorf("%w: %s has no argument %q; it takes %s", ErrArguments, t.Name, given, t.argumentNames())
		}
		if _, twice := fitted[name]; twice {
			return nil, fmt.Errorf("%w: %s is given %q twice", ErrArguments, t.Name, name)
		}
		fit, err := t.fit(name, value)
		if err != nil {
			return nil, err
		}
		if fit != nil {
			fitted[name] = fit
		}
	}
	for _, name := range t.Schema.Required {
		if _, given := fitted[name]; !given {
			return nil, fmt.Errorf("%w: %s needs %q; it takes %s", ErrArguments, t.Name, name, t.argumentNames())
		}
	}
	return fitted, nil
}

// argument returns the tool's spelling of name; case is ignored, as in the firmware.
func (t Tool) argument(name string) (string, bool) {
	if _, exact := t.Schema.Properties[name]; exact {
		return name, true
	}
	for own := range t.Schema.Properties {
		if strings.EqualFold(own, name) {
			return own, true
		}
	}
	return "", false
}

// argumentNames lists the tool's arguments for an error.
func (t Tool) argumentNames() string {
	if len(t.Schema.Properties) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(t.Schema.Properties)), ", ")
}

// fit converts one argument to what the robot accepts; nil means it is omitted.
func (t Tool) fit(name string, value any) (any, error) {
	a := t.Schema.Properties[name]
	wrong := func() error {
		return fmt.Errorf("%w: %s wants %q to be of type %s, not %.40v", ErrArguments, t.Name, name, a.Type, value)
	}
	switch a.Type {
	case "integer":
		n, ok := whole(value)
		if !ok {
			return nil, wrong()
		}
		return t.inRange(name, a, n)
	case "boolean":
		switch v := value.(type) {
		case bool:
			return v, nil
		case string:
			if b, err := strconv.ParseBool(v); err == nil {
				return b, nil
			}
		}
		return nil, wrong()
	case "string":
		if s, ok := value.(string); ok {
			return s, nil
		}
		return nil, wrong()
	}
	return value, nil // no current firmware lists such a type; the robot decides
}

func (t Tool) inRange(name string, a Argument, n int) (any, error) {
	head := strings.Contains(strings.ToLower(t.Name), "head")
	light := strings.Contains(strings.ToLower(t.Name), "led")
	sentinel := a.Minimum != nil && *a.Minimum == KeepHeadAxis
	switch {
	case n == KeepHeadAxis && (sentinel || head):
		return nil, nil
	case head && strings.EqualFold(name, "pitch"):
		a.Minimum = nil
		return a.Clamp(min(max(n, MinHeadPitch), MaxHeadPitch)), nil
	case head && strings.EqualFold(name, "yaw"):
		if sentinel && a.Maximum != nil {
			least := -*a.Maximum // the head turns as far to either side
			a.Minimum = &least
		}
		return a.Clamp(n), nil
	case head || light:
		return a.Clamp(n), nil
	case a.Clamp(n) != n:
		return nil, fmt.Errorf("%w: %s wants %q %s, not %d", ErrArguments, t.Name, name, a.limits(), n)
	}
	return n, nil
}

func (a Argument) limits() string {
	switch {
	case a.Minimum != nil && a.Maximum != nil:
		return fmt.Sprintf("from %d to %d", *a.Minimum, *a.Maximum)
	case a.Minimum != nil:
		return fmt.Sprintf("of at least %d", *a.Minimum)
	}
	return fmt.Sprintf("of at most %d", *a.Maximum)
}

// whole reads a whole number from the forms that JSON and language models give it.
// Like the firmware it truncates a fraction.
func whole(value any) (int, bool) {
	var f float64
	switch v := value.(type) {
	case int:
		return v, true
	case int64:
		f = float64(v)
	case float64:
		f = v
	case json.Number:
		return whole(string(v))
	case string:
		parsed, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil {
			return 0, false
		}
		f = parsed
	default:
		return 0, false
	}
	if math.IsNaN(f) || math.Abs(f) > math.MaxInt32 {
		return 0, false // the robot's integers have 32 bits
	}
	return int(f), true
}
