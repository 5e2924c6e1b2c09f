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

// clientVariables lists the variables of the commands that connect to a running appliance. These variables
// set no keys of the configuration.
var clientVariables = []string{"PERCH_URL", "PERCH_TOKEN"}

// skinsKeyVariable is the variable with which other programs set their key for skins. Perch uses it if
// PERCH_SKINS_KEY is not set.
const skinsKeyVariable = "VTUBER_AUTH_KEY"

// setVariables sets keys of the configuration that c points to from environment variables. The name of
// a variable is PERCH_ and the path of the key in capitals, joined by underscores, with the index of an
// entry in a list: PERCH_BRAINS_0_MODEL. Keys may contain underscores, so the longest key that fits the
// name is chosen.
func setVariables(k *checker, c any, environ []string) {
	if k.env == nil {
		k.env = map[string]string{}
	}
	stage := func(variable string) int { // the kind of an engine must be set before its other keys
		if name, _, _ := strings.Cut(variable, "="); strings.HasSuffix(name, "_KIND") {
			return 0
		}
		return 1
	}
	kindsFirst := func(a, b string) int { return cmp.Or(stage(a)-stage(b), strings.Compare(a, b)) }
	for _, variable := range slices.SortedFunc(slices.Values(environ), kindsFirst) {
		name, value, _ := strings.Cut(variable, "=")
		rest, isKey := strings.CutPrefix(name, "PERCH_")
		setsSkinsKey := func(v string) bool { return strings.HasPrefix(v, "PERCH_SKINS_KEY=") }
		if name == skinsKeyVariable && value != "" && !slices.ContainsFunc(environ, setsSkinsKey) {
			rest, isKey = "SKINS_KEY", true
		}
		if !isKey || slices.Contains(clientVariables, name) {
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

// setter finds the key that a variable names, and sets it.
type setter struct {
	value string   // the variable's value
	path  []string // the part of the key's path that was found so far
}

// set sets a key in v, a part of the configuration. rest is the end of the variable's name, which is the
// path of the key within v.
func (s *setter) set(v reflect.Value, rest string) error {
	if rest == "" {
		return s.setValue(v)
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
			return fmt.Errorf("%s is a list; add the number of an entry, from 0, after its name", strings.Join(s.path, "."))
		}
		if i < 0 || i > v.Len() {
			return fmt.Errorf("%s has no entry %d; the next new one is %d", strings.Join(s.path, "."), i, v.Len())
		}
		if i == v.Len() {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		}
		s.path = append(s.path, number)
		if engine, ok := v.Index(i).Addr().Interface().(*Engine); ok && rest == "KIND" {
			if s.path = append(s.path, "kind"); engine.Kind != s.value { // the other keys of the entry belong to the previous kind and are dropped
				*engine = Engine{s.value, kindsOf(v).Options(s.value)}
			}
			return nil
		}
		return s.set(v.Index(i), rest)
	}
	return errNoKey
}

// longestKey returns the field of the section v with the longest key that rest begins with. after is
// the part of rest after the key.
func longestKey(v reflect.Value, rest string) (field driver.Field, after string, ok bool) {
	for _, f := range driver.Fields(v) {
		if a, matches := strings.CutPrefix(rest+"_", strings.ToUpper(f.Key)+"_"); matches && len(f.Key) > len(field.Key) {
			field, after, ok = f, strings.TrimSuffix(a, "_"), true
		}
	}
	return field, after, ok
}

// describeType describes the form of a value of a type, for an error message.
func describeType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list such as [a, b]"
	case reflect.Map:
		return "{NAME: value}"
	case reflect.Pointer:
		return describeType(t.Elem())
	}
	if t == reflect.TypeFor[Duration]() || t == reflect.TypeFor[time.Duration]() {
		return "a duration such as 60s, 5m or 24h"
	}
	return "a number"
}

// setValue sets v, the value of a key, to the variable's value. It decodes the variable's value as YAML, except
// if v is a string or an encoding.TextUnmarshaler.
func (s *setter) setValue(v reflect.Value) error {
	u, isUnmarshaler := v.Addr().Interface().(encoding.TextUnmarshaler)
	switch {
	case isUnmarshaler:
		return u.UnmarshalText([]byte(s.value))
	case v.Kind() == reflect.String:
		v.SetString(s.value)
		return nil
	case v.Kind() == reflect.Struct:
		return fmt.Errorf("there is no such key; %s contains other keys", strings.Join(s.path, "."))
	}
	decoded := reflect.New(v.Type())
	if err := yaml.Unmarshal([]byte(s.value), decoded.Interface()); err != nil {
		return fmt.Errorf("the value is not of the right type; write %s", describeType(v.Type())) // do not quote the value, which may be a secret
	}
	v.Set(decoded.Elem())
	return nil
}
