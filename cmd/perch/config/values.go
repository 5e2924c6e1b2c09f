package config

import (
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"perch/driver"
)

// Duration is a time.Duration written as "60s" or "24h".
type Duration time.Duration

// UnmarshalYAML implements yaml.Unmarshaler. It refuses numbers without a unit except 0, and negative durations.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	parsed, err := time.ParseDuration(n.Value)
	if err != nil || parsed < 0 {
		// The text is the same as the YAML library's for a time.Duration, so that checker.syntax
		// rewrites it.
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: cannot unmarshal %s `%s` into time.Duration", n.Line, n.Tag, n.Value)}}
	}
	*d = Duration(parsed)
	return nil
}

// Languages is the value of the key language: language tags separated by commas, such as "de" or "en, de". The
// first one is the default.
type Languages string

// UnmarshalYAML implements yaml.Unmarshaler. It accepts one language or a list.
func (l *Languages) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*l = Languages(n.Value)
		return nil
	}
	var tags []string
	if err := n.Decode(&tags); err != nil {
		return fmt.Errorf("line %d: cannot unmarshal %s into Languages", n.Line, n.Tag)
	}
	*l = Languages(strings.Join(tags, ", "))
	return nil
}

// List returns the language tags. It has at least one element, which may be "".
func (l Languages) List() (tags []string) {
	for tag := range strings.SplitSeq(string(l), ",") {
		tags = append(tags, strings.TrimSpace(tag))
	}
	return tags
}

// First returns the default language.
func (l Languages) First() string { return l.List()[0] }

// languageTag matches language tags of BCP 47, but not all of its rarer forms.
var languageTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`) })

// PersonaName matches the names of personas and characters. The names are also names of files in the data
// directory, and cannot lead out of this directory.
var PersonaName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// eachKey calls do with the path and value of every key in a section of the configuration. path is the
// section's path. It does not call do for the entries of lists and maps.
func eachKey(path string, v reflect.Value, do func(key string, v reflect.Value)) {
	for _, f := range driver.Fields(v) {
		key := strings.TrimPrefix(path+"."+f.Key, ".")
		if f.Value.Kind() == reflect.Struct && typeOf(f.Value.Type()) == "" {
			eachKey(key, f.Value, do)
		} else {
			do(key, f.Value)
		}
	}
}

// typeOf returns the kind of input that a form shows for a type, or "" for a section.
func typeOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[Duration]() || t == reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "text"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeOf(t.Elem())
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Map, reflect.Interface:
		return "list"
	}
	return ""
}

// hasSections reports whether values of a type are mappings, or lists that may contain mappings.
func hasSections(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Map:
		return true
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Struct || t.Elem().Kind() == reflect.Interface
	}
	return false
}

// namesOf converts a list to strings.
func namesOf[T ~string](list []T) (names []string) {
	for _, name := range list {
		names = append(names, string(name))
	}
	return names
}
