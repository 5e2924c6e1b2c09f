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

// decoded decodes a text of the configuration.
func decoded(text []byte) (tree map[string]any, err error) {
	if _, err := parsed(string(text)); err != nil {
		return nil, err
	}
	err = yaml.Unmarshal(text, &tree)
	return tree, err
}

// edited is an overlay that is being changed.
type edited struct {
	keys map[string]Key
	file map[string]any // the owner's file, decoded
	tree map[string]any // the overlay, decoded
}

// with returns the overlay with a value at a key, or without the key if the value is nil.
func (e edited) with(key string, value any) (map[string]any, error) {
	path := strings.Split(key, ".")
	k, exists := e.keys[key]
	list, inList := e.listOf(key)
	value, err := fitting(k.Type, value)
	switch section, is := value.(map[string]any); {
	case err != nil:
		return e.tree, err
	case inList && !exists:
		k = list
	case exists || value == nil && at(e.tree, path) != nil:
	case !e.isSection(key):
		return e.tree, errors.New("there is no such key")
	case value == nil:
		return e.tree, nil
	case !is:
		return e.tree, errors.New("it holds other keys, such as {key: value}")
	default:
		for _, below := range slices.Sorted(maps.Keys(section)) {
			if e.tree, err = e.with(key+"."+below, section[below]); err != nil {
				return e.tree, fmt.Errorf("%s: %w", below, err)
			}
		}
		return e.tree, nil
	}
	if k.By != "" && (value != nil || inList) {
		return e.tree, fmt.Errorf("%s sets it, and comes before the settings; change it there", k.By)
	}
	if inList {
		listPath, rest := strings.Split(list.Key, "."), strings.Split(strings.TrimPrefix(key, list.Key+"."), ".")
		was := at(e.tree, listPath)
		if was == nil {
			was = at(e.file, listPath)
		}
		if was == nil {
			was = list.Default
		}
		if len(rest) == 2 && rest[1] == "kind" && value != nil && k.Value != value { // an engine of another kind keeps no other key
			rest, value = rest[:1], map[string]any{"kind": value}
		}
		if value, err = with(was, rest, value); err != nil {
			return e.tree, err
		}
		path = listPath
	}
	now, err := with(e.tree, path, value)
	tree, is := now.(map[string]any)
	if err == nil && !is && now != nil {
		err = errors.New("there is no such key")
	}
	return tree, err
}

// listOf returns the list of engines or sections that has a key in one of its entries.
func (e edited) listOf(key string) (Key, bool) {
	path := strings.Split(key, ".")
	for i, name := range path {
		if _, err := strconv.Atoi(name); err == nil && i > 0 {
			list, is := e.keys[strings.Join(path[:i], ".")]
			return list, is && list.Type == "list"
		}
	}
	return Key{}, false
}

// isSection reports whether a key holds others.
func (e edited) isSection(key string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(e.keys)), func(other string) bool { return strings.HasPrefix(other, key+".") })
}

// at returns the value at a path, or nil.
func at(tree any, path []string) any {
	for _, key := range path {
		section, is := tree.(map[string]any)
		if !is {
			return nil
		}
		tree = section[key]
	}
	return tree
}

// with returns a document with another value at a path, or without that path if the value is nil. It
// does not change tree.
func with(tree any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	if list, is := tree.([]any); is {
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i > len(list) || i == len(list) && value == nil {
			return nil, fmt.Errorf("there is no place %s in the list of %d", path[0], len(list))
		}
		if list = slices.Clone(list); value == nil && len(path) == 1 {
			return slices.Delete(list, i, i+1), nil
		}
		if i == len(list) {
			list = append(list, nil)
		}
		list[i], err = with(list[i], path[1:], value)
		return list, err
	}
	section, is := tree.(map[string]any)
	if !is && tree != nil {
		return nil, fmt.Errorf("%s is in no section", path[0])
	}
	if section = maps.Clone(section); section == nil {
		section = map[string]any{}
	}
	below, err := with(section[path[0]], path[1:], value)
	if empty, is := below.(map[string]any); below == nil || value == nil && is && len(empty) == 0 {
		delete(section, path[0])
	} else {
		section[path[0]] = below
	}
	return section, err
}

// inOrder returns the keys of a change in the order of their application: the kinds of engines,
// then other values, by their places in lists, then what is removed, from the end, so that the places
// of entries do not shift before.
func inOrder(values map[string]any) []string {
	turn := func(key string) int {
		switch {
		case values[key] == nil:
			return 2
		case strings.HasSuffix(key, ".kind"):
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		if turn(a) != turn(b) {
			return turn(a) - turn(b)
		}
		places := slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
			n, err := strconv.Atoi(x)
			m, err2 := strconv.Atoi(y)
			if err == nil && err2 == nil {
				return n - m
			}
			return strings.Compare(x, y)
		})
		if turn(a) == 2 {
			return -places
		}
		return places
	})
}

// fitting converts a value of JSON for a key of a type. A text at a key that holds no text is read as
// YAML, as in the file.
func fitting(kind string, value any) (any, error) {
	text, is := value.(string)
	switch {
	case slices.Contains([]string{"text", "choice", "secret", "duration"}, kind):
		if n, is := value.(float64); is {
			return strconv.FormatFloat(n, 'f', -1, 64), nil
		}
	case is:
		_, err := parsed(text)
		if err == nil {
			err = yaml.Unmarshal([]byte(text), &value)
		}
		if err != nil {
			return nil, fmt.Errorf("it is no YAML: %w", err)
		}
	}
	return whole(value), nil
}

// whole converts the numbers of a value that are whole to integers, which JSON does not have, and
// removes keys without a value.
func whole(value any) any {
	switch v := value.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case []any:
		for i, item := range v {
			v[i] = whole(item)
		}
	case map[string]any:
		for key, item := range v {
			if v[key] = whole(item); item == nil {
				delete(v, key)
			}
		}
	}
	return value
}
