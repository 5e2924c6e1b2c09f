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

// UnmarshalYAML reads a duration, and refuses a bare number, which has no unit.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	parsed, err := time.ParseDuration(n.Value)
	if err != nil || parsed < 0 {
		// The words of the library for a time.Duration; syntax rewords both.
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: cannot unmarshal %s `%s` into time.Duration", n.Line, n.Tag, n.Value)}}
	}
	*d = Duration(parsed)
	return nil
}

// Languages lists the languages of a household, the usual one first: "de", or "en, de".
type Languages string

// UnmarshalYAML implements yaml.Unmarshaler. It reads one language or a list.
func (l *Languages) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*l = Languages(n.Value)
		return nil
	}
	var all []string
	if err := n.Decode(&all); err != nil {
		return fmt.Errorf("line %d: cannot unmarshal %s into Languages", n.Line, n.Tag)
	}
	*l = Languages(strings.Join(all, ", "))
	return nil
}

// List returns the languages.
func (l Languages) List() (all []string) {
	for tag := range strings.SplitSeq(string(l), ",") {
		all = append(all, strings.TrimSpace(tag))
	}
	return all
}

// First returns the usual language.
func (l Languages) First() string { return l.List()[0] }

// languageTag matches language tags by a part of BCP 47.
var languageTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`) })

// PersonaName matches names of personas and characters, which are names of files in the data
// directory and lead to no other file.
var PersonaName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// eachKey calls do for every key of a section of the configuration, with its path. It does not look
// into lists and mappings.
func eachKey(under string, v reflect.Value, do func(key string, v reflect.Value)) {
	for _, f := range driver.Fields(v) {
		key := strings.TrimPrefix(under+"."+f.Key, ".")
		if f.Value.Kind() == reflect.Struct && typeOf(f.Value.Type()) == "" {
			eachKey(key, f.Value, do)
		} else {
			do(key, f.Value)
		}
	}
}

// typeOf returns the kind of field that a form has for a type, or "" for a section.
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

// sectioned reports whether a list or a mapping holds sections, or may.
func sectioned(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Map:
		return true
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Struct || t.Elem().Kind() == reflect.Interface
	}
	return false
}

func namesOf[T ~string](all []T) (names []string) {
	for _, name := range all {
		names = append(names, string(name))
	}
	return names
}
