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

// ErrArguments is wrapped by the errors of Tool.Fit.
var ErrArguments = errors.New("the tool does not take these arguments")

// Fit converts arguments to what the tool's schema requires: it changes names to the tool's
// spelling, converts numbers and strings to integers, and strings to booleans, clamps angles of the head and
// colours of lights to their range, and leaves out null values and axes of the head with the value
// KeepHeadAxis. It returns an error that wraps ErrArguments if the robot would refuse the arguments,
// or would ignore one because of its name.
func (t Tool) Fit(arguments map[string]any) (map[string]any, error) {
	fitted := make(map[string]any, len(arguments))
	for _, alias := range slices.Sorted(maps.Keys(arguments)) {
		value := arguments[alias]
		name, ok := t.argument(alias)
		switch {
		case value == nil:
			continue // some models send null to leave an argument out
		case !ok:
			return nil, fmt.Errorf("%w: %s has no argument %q; it takes %s", ErrArguments, t.Name, alias, t.argumentNames())
		}
		if _, exists := fitted[name]; exists {
			return nil, fmt.Errorf("%w: %s is given %q twice", ErrArguments, t.Name, name)
		}
		converted, err := t.fit(name, value)
		if err != nil {
			return nil, err
		}
		if converted != nil {
			fitted[name] = converted
		}
	}
	for _, name := range t.Schema.Required {
		if _, ok := fitted[name]; !ok {
			return nil, fmt.Errorf("%w: %s needs %q; it takes %s", ErrArguments, t.Name, name, t.argumentNames())
		}
	}
	return fitted, nil
}

// argument returns the tool's spelling of an argument's name, or false if the tool has no such argument.
// It ignores case.
func (t Tool) argument(name string) (string, bool) {
	if _, ok := t.Schema.Properties[name]; ok {
		return name, true
	}
	for property := range t.Schema.Properties {
		if strings.EqualFold(property, name) {
			return property, true
		}
	}
	return "", false
}

// argumentNames returns the names of the tool's arguments for an error message, or "none".
func (t Tool) argumentNames() string {
	if len(t.Schema.Properties) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(t.Schema.Properties)), ", ")
}

// fit converts the value of one argument for the robot. A nil result means that the argument is left
// out.
func (t Tool) fit(name string, value any) (any, error) {
	a := t.Schema.Properties[name]
	typeError := func() error {
		return fmt.Errorf("%w: %s wants %q to be of type %s, not %.40v", ErrArguments, t.Name, name, a.Type, value)
	}
	switch a.Type {
	case "integer":
		n, ok := parseInteger(value)
		if !ok {
			return nil, typeError()
		}
		return t.fitRange(name, a, n)
	case "boolean":
		switch v := value.(type) {
		case bool:
			return v, nil
		case string:
			if b, err := strconv.ParseBool(v); err == nil {
				return b, nil
			}
		}
		return nil, typeError()
	case "string":
		if s, ok := value.(string); ok {
			return s, nil
		}
		return nil, typeError()
	}
	return value, nil // no current firmware has other types; the robot checks the value itself
}

// fitRange clamps angles and colours to the range of an argument, and returns an error for other
// integers out of range. A nil result means that the argument is left out.
func (t Tool) fitRange(name string, a Argument, n int) (any, error) {
	parts := t.nameParts()
	head, light := slices.Contains(parts, "head"), slices.Contains(parts, "led") || slices.Contains(parts, "leds")
	hasKeepValue := a.Minimum != nil && *a.Minimum == KeepHeadAxis
	switch {
	case n == KeepHeadAxis && (hasKeepValue || head):
		return nil, nil
	case head && strings.EqualFold(name, "pitch"):
		a.Minimum = nil
		return a.Clamp(min(max(n, MinHeadPitch), MaxHeadPitch)), nil
	case head && strings.EqualFold(name, "yaw"):
		if hasKeepValue && a.Maximum != nil {
			minimum := -*a.Maximum // the range is symmetric
			a.Minimum = &minimum
		}
		return a.Clamp(n), nil
	case head || light:
		return a.Clamp(n), nil
	case a.Clamp(n) != n:
		return nil, fmt.Errorf("%w: %s wants %q %s, not %d", ErrArguments, t.Name, name, a.rangeText(), n)
	}
	return n, nil
}

// rangeText describes the argument's range for an error message. The argument must have a minimum or a
// maximum.
func (a Argument) rangeText() string {
	switch {
	case a.Minimum != nil && a.Maximum != nil:
		return fmt.Sprintf("from %d to %d", *a.Minimum, *a.Maximum)
	case a.Minimum != nil:
		return fmt.Sprintf("of at least %d", *a.Minimum)
	}
	return fmt.Sprintf("of at most %d", *a.Maximum)
}

// parseInteger returns the 32-bit integer in a decoded JSON value. It accepts numbers in strings,
// which some language models send, and truncates fractions, as the firmware does.
func parseInteger(value any) (int, bool) {
	var f float64
	switch v := value.(type) {
	case int:
		return v, true
	case int64:
		f = float64(v)
	case float64:
		f = v
	case json.Number:
		return parseInteger(string(v))
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
		return 0, false
	}
	return int(f), true
}
