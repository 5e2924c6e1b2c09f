package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decodeTree decodes a YAML text into maps and lists.
func decodeTree(text []byte) (tree map[string]any, err error) {
	if _, err := parseYAML(string(text)); err != nil {
		return nil, err
	}
	err = yaml.Unmarshal(text, &tree)
	return tree, err
}

// overlayEditor computes changes of the overlay, the file of changed settings.
type overlayEditor struct {
	keys map[string]Key // the keys of the configuration, by their paths
	file map[string]any // the owner's file, decoded
	tree map[string]any // the overlay, decoded
}

// set returns the overlay with a value at a key, or without the key if the value is nil. For a key in an
// entry of a list, the result contains the whole changed list. If key is a section, set sets each key in value.
func (e overlayEditor) set(key string, value any) (map[string]any, error) {
	path := strings.Split(key, ".")
	k, exists := e.keys[key]
	list, inList := e.listOf(key)
	value, err := convertJSON(k.Type, value)
	switch section, isSection := value.(map[string]any); {
	case err != nil:
		return e.tree, err
	case inList && !exists:
		k = list
	case exists || value == nil && valueAt(e.tree, path) != nil:
	case !e.isSection(key):
		return e.tree, errNoKey
	case value == nil:
		return e.tree, nil
	case !isSection:
		return e.tree, errors.New("this key contains other keys; write {KEY: VALUE}")
	default:
		for _, below := range slices.Sorted(maps.Keys(section)) {
			if e.tree, err = e.set(key+"."+below, section[below]); err != nil {
				return e.tree, fmt.Errorf("%s: %w", below, err)
			}
		}
		return e.tree, nil
	}
	if k.By != "" && (value != nil || inList) {
		return e.tree, fmt.Errorf("%s sets this key and overrides the settings; change it there", k.By)
	}
	if inList {
		listPath, rest := strings.Split(list.Key, "."), strings.Split(strings.TrimPrefix(key, list.Key+"."), ".")
		current := e.current(list)
		if len(rest) == 2 && rest[1] == "kind" && value != nil && k.Value != value { // the other keys of the entry belong to the previous kind and are dropped
			rest, value = rest[:1], map[string]any{"kind": value}
		}
		if value, err = withValue(current, rest, value); err != nil {
			return e.tree, err
		}
		path = listPath
	} else if entries, ok := value.([]any); ok && k.Kinds != nil {
		if value, err = keepEntries(entries, e.current(k)); err != nil {
			return e.tree, err
		}
	}
	changed, err := withValue(e.tree, path, value)
	tree, ok := changed.(map[string]any)
	if err == nil && !ok && changed != nil {
		err = errNoKey
	}
	return tree, err
}

// current returns the current value of a list, with its secrets.
func (e overlayEditor) current(list Key) any {
	path := strings.Split(list.Key, ".")
	if value := valueAt(e.tree, path); value != nil {
		return value
	}
	if value := valueAt(e.file, path); value != nil {
		return value
	}
	return list.Value // the default, which has no secrets
}

// errListChanged is the error for a change that is based on an earlier version of a list.
var errListChanged = errors.New("the list has changed since you opened it, so nothing was saved; open it again, and repeat your change")

// keepEntries returns a list of engines whose entries {from: N, kind: KIND, of: LENGTH} are replaced by entry N of
// the current list. If the list does not have this length, or the entry does not have this kind, keepEntries
// returns errListChanged. Clients need not know the secrets of entries that they keep or move.
func keepEntries(entries []any, current any) ([]any, error) {
	now, _ := current.([]any)
	kept := slices.Clone(entries)
	for i, entry := range entries {
		reference, _ := entry.(map[string]any)
		from, isReference := reference["from"]
		if !isReference {
			continue
		}
		n, isNumber := from.(int64)
		if !isNumber || n < 0 || n >= int64(len(now)) || reference["of"] != int64(len(now)) || len(reference) != 3 {
			return nil, errListChanged
		}
		if engine, ok := now[n].(map[string]any); !ok || engine["kind"] != reference["kind"] {
			return nil, errListChanged
		}
		kept[i] = now[n]
	}
	return kept, nil
}

// listOf returns the list whose entries contain a key, or false if the key is not in a list.
func (e overlayEditor) listOf(key string) (Key, bool) {
	path := strings.Split(key, ".")
	for i, name := range path {
		if _, err := strconv.Atoi(name); err == nil && i > 0 {
			list, ok := e.keys[strings.Join(path[:i], ".")]
			return list, ok && list.Type == "list"
		}
	}
	return Key{}, false
}

func (e overlayEditor) isSection(key string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(e.keys)), func(other string) bool { return strings.HasPrefix(other, key+".") })
}

// valueAt returns the value at a path, or nil.
func valueAt(tree any, path []string) any {
	for _, key := range path {
		section, ok := tree.(map[string]any)
		if !ok {
			return nil
		}
		tree = section[key]
	}
	return tree
}

// withValue returns a copy of tree with a value at a path. If the value is nil, the copy lacks the path and
// the sections that become empty, except the root and entries of lists. An index equal to the length of a list
// appends an entry.
func withValue(tree any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	if list, ok := tree.([]any); ok {
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i > len(list) || i == len(list) && value == nil {
			return nil, fmt.Errorf("there is no entry %s in the list of %d", path[0], len(list))
		}
		if list = slices.Clone(list); value == nil && len(path) == 1 {
			return slices.Delete(list, i, i+1), nil
		}
		if i == len(list) {
			list = append(list, nil)
		}
		list[i], err = withValue(list[i], path[1:], value)
		return list, err
	}
	section, isSection := tree.(map[string]any)
	if !isSection && tree != nil {
		return nil, fmt.Errorf("%s is not in a section", path[0])
	}
	if section = maps.Clone(section); section == nil {
		section = map[string]any{}
	}
	below, err := withValue(section[path[0]], path[1:], value)
	if belowSection, ok := below.(map[string]any); below == nil || value == nil && ok && len(belowSection) == 0 {
		delete(section, path[0])
	} else {
		section[path[0]] = below
	}
	return section, err
}

// editOrder returns the keys of a change in the order of setting them: first the kinds of engines,
// then other values by their index in lists, then removals. Removals begin at the end of a list,
// because each removal shifts the entries after it.
func editOrder(values map[string]any) []string {
	stage := func(key string) int {
		switch {
		case values[key] == nil:
			return 2
		case strings.HasSuffix(key, ".kind"):
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		if stage(a) != stage(b) {
			return stage(a) - stage(b)
		}
		order := slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
			n, err := strconv.Atoi(x)
			m, err2 := strconv.Atoi(y)
			if err == nil && err2 == nil {
				return n - m
			}
			return strings.Compare(x, y)
		})
		if stage(a) == 2 {
			return -order
		}
		return order
	})
}

// convertJSON converts a value that was decoded from JSON into a value for a key whose Key.Type is
// kind. If the key holds a text, choice, secret or duration, a number becomes a string; otherwise a
// string is decoded as YAML, as in the file.
func convertJSON(kind string, value any) (any, error) {
	text, isText := value.(string)
	switch {
	case slices.Contains([]string{"text", "choice", "secret", "duration"}, kind):
		if n, ok := value.(float64); ok {
			return strconv.FormatFloat(n, 'f', -1, 64), nil
		}
	case isText:
		_, err := parseYAML(text)
		if err == nil {
			err = yaml.Unmarshal([]byte(text), &value)
		}
		if err != nil {
			return nil, fmt.Errorf("it is not valid YAML: %w", err)
		}
	}
	return normalizeJSON(value), nil
}

// normalizeJSON turns the whole numbers in a value that was decoded from JSON into integers, and
// removes keys whose value is null. It may change value.
func normalizeJSON(value any) any {
	switch v := value.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case []any:
		for i, item := range v {
			v[i] = normalizeJSON(item)
		}
	case map[string]any:
		for key, item := range v {
			if v[key] = normalizeJSON(item); item == nil {
				delete(v, key)
			}
		}
	}
	return value
}
