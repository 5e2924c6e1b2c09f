package homeassistant

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var idOnly = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// idPattern holds for what can be a part of a discovery topic.
func idPattern(id string) bool { return idOnly.MatchString(id) }

// objectField is a field that must be there and be an object.
func objectField(m map[string]any, key string) (map[string]any, error) {
	value, there := m[key]
	if !there {
		return nil, fmt.Errorf("required key not provided: %s", key)
	}
	o, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is no object", key)
	}
	return o, nil
}

// textField is a field that must be there and be a text.
func textField(m map[string]any, key string) (string, error) {
	value, there := m[key]
	if !there {
		return "", fmt.Errorf("required key not provided: %s", key)
	}
	s, ok := value.(string)
	if !ok || s == "" {
		return "", fmt.Errorf("%s is %v, not a text", key, value)
	}
	return s, nil
}

// textList is a field that may be there, and be a list of different texts. It is
// nil where the field is not there.
func textList(m map[string]any, key string) ([]string, error) {
	value, there := m[key]
	if !there {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is %v, not a list of texts", key, value)
	}
	found := []string{}
	for _, v := range list {
		s, ok := v.(string)
		switch {
		case !ok || s == "":
			return nil, fmt.Errorf("%s has %v, which is no text", key, v)
		case slices.Contains(found, s):
			return nil, fmt.Errorf("%s has %q twice", key, s)
		}
		found = append(found, s)
	}
	return found, nil
}

// numberField is a field that may be there and be a number.
func numberField(m map[string]any, key string, otherwise float64) (float64, error) {
	value, there := m[key]
	if !there {
		return otherwise, nil
	}
	n, ok := value.(float64)
	if !ok {
		return 0, fmt.Errorf("%s is %v, not a number", key, value)
	}
	return n, nil
}

// onlyKeys refuses a key that is not known.
func onlyKeys(where string, m map[string]any, known []string) error {
	for key := range m {
		if !slices.Contains(known, key) {
			return fmt.Errorf("%s: extra keys not allowed: %q", where, key)
		}
	}
	return nil
}

// checkTemplate wants a template's brackets to be in pairs, and one that reads
// a state to be proof against keys that are not there.
func checkTemplate(key, template string) error {
	for _, pair := range [][2]string{{"{{", "}}"}, {"{%", "%}"}} {
		rest := template
		for {
			_, after, opened := strings.Cut(rest, pair[0])
			if !opened {
				break
			}
			_, after, closed := strings.Cut(after, pair[1])
			if !closed {
				return fmt.Errorf("%s: %q is not closed in %q", key, pair[0], template)
			}
			rest = after
		}
	}
	if strings.Count(template, "value_json") != strings.Count(template, "value_json.get(") {
		return fmt.Errorf("%s: %q logs an error for a key that is not there; value_json.get('key') does not", key, template)
	}
	return nil
}
