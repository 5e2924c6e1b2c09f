package homeassistant

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// checkFields holds an object against the keys that it must have and those that
// it may have besides, and each value against what its key stands for.
func checkFields(where string, m map[string]any, required, optional []string) error {
	if err := onlyKeys(where, m, slices.Concat(required, optional)); err != nil {
		return err
	}
	for _, key := range required {
		if _, there := m[key]; !there {
			return fmt.Errorf("%s: required key not provided: %s", where, key)
		}
	}
	for key := range m {
		if err := checkField(m, key); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	return nil
}

// checkField is about one value. Most are texts.
func checkField(m map[string]any, key string) (err error) {
	value, ok, want := m[key], true, ""
	switch key {
	case "device", "origin", "components":
		_, ok = value.(map[string]any)
		want = "an object"
	case "brightness", "flash", "transition":
		_, ok = value.(bool)
		want = "true or false"
	case "qos":
		ok, want = slices.Contains([]any{0.0, 1.0, 2.0}, value), "0, 1 or 2"
	case "availability_mode":
		ok, want = value == "all", "all"
	case "min", "max", "step":
		_, err = numberField(m, key, 0)
	case "identifiers", "options", "event_types", "supported_color_modes":
		_, err = textList(m, key)
	case "availability":
		err = checkAvailability(value)
	case "connections":
		err = checkConnections(value)
	default:
		err = checkWord(key, value)
	}
	if !ok {
		err = fmt.Errorf("%s is %v, not %s", key, value, want)
	}
	return err
}

// checkWord wants a text, and of some what Home Assistant does with it.
func checkWord(key string, value any) error {
	word, isText := value.(string)
	switch {
	case isText && strings.HasSuffix(key, "topic"):
		if err := legalTopic(word); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	case word == "":
		return fmt.Errorf("%s is %v, not a text", key, value)
	case strings.HasSuffix(key, "template"):
		return checkTemplate(key, word)
	case key == "icon" && !strings.Contains(word, ":"):
		return fmt.Errorf("icon %s is not of the form prefix:name", word)
	case key == "configuration_url" && !isPage(word):
		return fmt.Errorf("configuration_url %q is no http, https or homeassistant URL", word)
	}
	return nil
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

// checkAvailability wants a list of topics.
func checkAvailability(value any) error {
	refs, ok := value.([]any)
	if !ok {
		return fmt.Errorf("availability is %v, not a list", value)
	}
	for _, r := range refs {
		ref, ok := r.(map[string]any)
		if !ok {
			return fmt.Errorf("availability has %v, which is no object", r)
		}
		if err := checkFields("availability", ref, []string{"topic"}, []string{"value_template"}); err != nil {
			return err
		}
	}
	return nil
}

var macPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`) })

// checkConnections wants pairs of a kind and a value.
func checkConnections(value any) error {
	pairs, _ := value.([]any)
	if len(pairs) == 0 {
		return errors.New("connections is no list of pairs")
	}
	for _, p := range pairs {
		pair, _ := p.([]any)
		if len(pair) != 2 {
			return fmt.Errorf("connections has %v, which is no pair", p)
		}
		kind, isText := pair[0].(string)
		name, both := pair[1].(string)
		if !isText || !both {
			return fmt.Errorf("connections has %v, which is no pair of texts", p)
		}
		if kind == "mac" && !macPattern().MatchString(name) {
			return fmt.Errorf("connections has %q, which is no MAC address in small letters with colons", name)
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
