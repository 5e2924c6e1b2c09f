package config

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"perch/driver"
)

// clientVariables are for the commands that talk to a running appliance, not for the configuration.
var clientVariables = []string{"PERCH_URL", "PERCH_TOKEN"}

// skinsKey is the variable with the skins' key in other programs, which Perch reads, too.
const skinsKey = "VTUBER_AUTH_KEY"

// setVariables sets keys of the configuration that c points to from variables: PERCH_ and the path of
// a key in capitals, joined by underscores, with a number for a place in a list. If an underscore may
// be a part of a key, the longest key wins.
func setVariables(k *checker, c any, environ []string) {
	if k.env == nil {
		k.env = map[string]string{}
	}
	turn := func(variable string) int { // an engine's kind is set before its other keys
		if name, _, _ := strings.Cut(variable, "="); strings.HasSuffix(name, "_KIND") {
			return 0
		}
		return 1
	}
	kindsFirst := func(a, b string) int { return cmp.Or(turn(a)-turn(b), strings.Compare(a, b)) }
	for _, variable := range slices.SortedFunc(slices.Values(environ), kindsFirst) {
		name, value, _ := strings.Cut(variable, "=")
		rest, ours := strings.CutPrefix(name, "PERCH_")
		own := func(v string) bool { return strings.HasPrefix(v, "PERCH_SKINS_KEY=") }
		if name == skinsKey && value != "" && !slices.ContainsFunc(environ, own) {
			rest, ours = "SKINS_KEY", true
		}
		if !ours || slices.Contains(clientVariables, name) {
			continue
		}
		s := setter{value: value}
		if err := s.set(reflect.ValueOf(c).Elem(), rest); err != nil {
			k.found = append(k.found, fault(fmt.Errorf("%s: %w", name, err)))
			continue
		}
		k.env[strings.Join(s.path, ".")] = name
	}
}

// setter follows a variable's name into the configuration.
type setter struct {
	value string
	path  []string
}

func (s *setter) set(v reflect.Value, rest string) error {
	if rest == "" {
		return s.leaf(v)
	}
	switch v.Kind() {
	case reflect.Struct:
		if field, rest, ok := longestKey(v, rest); ok {
			s.path = append(s.path, field.Key)
			return s.set(field.Value, rest)
		}
	case reflect.Slice:
		number, rest, _ := strings.Cut(rest, "_")
		i, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("%s is a list; put a place in it after its name, from 0", strings.Join(s.path, "."))
		}
		if i < 0 || i > v.Len() {
			return fmt.Errorf("%s has no place %d; the next free one is %d", strings.Join(s.path, "."), i, v.Len())
		}
		if i == v.Len() {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		}
		s.path = append(s.path, number)
		if engine, is := v.Index(i).Addr().Interface().(*Engine); is && rest == "KIND" {
			if s.path = append(s.path, "kind"); engine.Kind != s.value { // an engine of another kind keeps no other key
				*engine = Engine{s.value, kindsOf(v).Options(s.value)}
			}
			return nil
		}
		return s.set(v.Index(i), rest)
	}
	return errNoKey
}

// longestKey returns the field of a section whose key rest begins with.
func longestKey(v reflect.Value, rest string) (field driver.Field, after string, ok bool) {
	for _, f := range driver.Fields(v) {
		if a, fits := strings.CutPrefix(rest+"_", strings.ToUpper(f.Key)+"_"); fits && len(f.Key) > len(field.Key) {
			field, after, ok = f, strings.TrimSuffix(a, "_"), true
		}
	}
	return field, after, ok
}

// form says how a value of a type is written.
func form(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list such as [a, b]"
	case reflect.Map:
		return "{NAME: value}"
	case reflect.Pointer:
		return form(t.Elem())
	}
	if t == reflect.TypeFor[Duration]() || t == reflect.TypeFor[time.Duration]() {
		return "a duration such as 60s, 5m or 24h"
	}
	return "a number"
}

// leaf sets the value of a key: a text unchanged, any other value as YAML.
func (s *setter) leaf(v reflect.Value) error {
	text, readsText := v.Addr().Interface().(encoding.TextUnmarshaler)
	switch {
	case readsText:
		return text.UnmarshalText([]byte(s.value))
	case v.Kind() == reflect.String:
		v.SetString(s.value)
		return nil
	case v.Kind() == reflect.Struct:
		return fmt.Errorf("there is no such key; %s holds others", strings.Join(s.path, "."))
	}
	fresh := reflect.New(v.Type())
	if err := yaml.Unmarshal([]byte(s.value), fresh.Interface()); err != nil {
		return fmt.Errorf("what it is set to is not what belongs there: %s", form(v.Type())) // the value may be a secret, and is not quoted
	}
	v.Set(fresh.Elem())
	return nil
}
