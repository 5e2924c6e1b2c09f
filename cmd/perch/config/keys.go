package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"perch/driver"
)

// Key is a key of the configuration with its value, as a form shows it.
type Key struct {
	Key     string   `json:"key"` // its path
	Type    string   `json:"type"`
	Choices []string `json:"choices,omitempty"`
	Value   any      `json:"value"` // of a secret {"set": true} or {"set": false}
	Default any      `json:"default"`
	// Sections reports whether Value is or has sections. Text is Value in YAML.
	Sections bool   `json:"sections,omitempty"`
	Text     string `json:"text,omitempty"`
	From     string `json:"from"`
	By       string `json:"by,omitempty"`   // the variable or the flag that sets it
	Line     int    `json:"line,omitempty"` // in the owner's file
	Doc      string `json:"doc,omitempty"`
	// About is the key that Doc is written for, and its key in language/TAG/keys.json.
	// Several keys may share a text.
	About string `json:"about,omitempty"`
	// Kinds has the keys of an entry of a list of engines, by its kind.
	Kinds map[string][]string `json:"kinds,omitempty"`
}

// Values of Key.From.
const (
	fromFile        = "file"
	fromSettings    = "settings" // the overlay
	fromEnvironment = "environment"
	fromFlag        = "flag"
	fromDefault     = "default"
)

// Keys returns the names of all keys, without those of entries of lists.
func Keys() (names []string) {
	c := Default()
	eachKey("", reflect.ValueOf(&c).Elem(), func(key string, _ reflect.Value) { names = append(names, key) })
	return names
}

// Changed returns the keys whose values differ between two configurations.
func Changed(a, b *Config) (keys []string) {
	were := map[string]reflect.Value{}
	eachKey("", reflect.ValueOf(a).Elem(), func(key string, v reflect.Value) { were[key] = v })
	eachKey("", reflect.ValueOf(b).Elem(), func(key string, v reflect.Value) {
		empty := (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len()+were[key].Len() == 0
		if !empty && !reflect.DeepEqual(were[key].Interface(), v.Interface()) {
			keys = append(keys, key)
		}
	})
	return keys
}

// listKeys returns all keys of a configuration, also those of its engines and robots.
func listKeys(k *checker, c *Config, defaults Config, fixed map[string]string, hidden secretTexts) (all []Key) {
	l := keyLister{checker: k, fixed: fixed, hidden: hidden, docs: sampleDocs()}
	l.list(reflect.ValueOf(c).Elem(), reflect.ValueOf(&defaults).Elem())
	return l.all
}

type keyLister struct {
	*checker
	fixed  map[string]string
	hidden secretTexts
	docs   map[string]comment
	all    []Key
}

func (l *keyLister) list(v, standard reflect.Value) {
	defaults := map[string]reflect.Value{}
	eachKey("", standard, func(key string, v reflect.Value) { defaults[key] = v })
	eachKey("", v, func(key string, v reflect.Value) {
		path := strings.Split(key, ".")
		l.add(path, v, defaults[key], l.docs[key])
		if v.Kind() != reflect.Slice || v.Type().Elem().Kind() != reflect.Struct {
			return
		}
		for i := range v.Len() {
			l.entry(append(slices.Clone(path), strconv.Itoa(i)), v.Index(i))
		}
	})
}

// entry lists the keys of an entry of a list. An engine has the keys of its kind.
func (l *keyLister) entry(path []string, v reflect.Value) {
	if path[0] == "rules" {
		return // a form does not show the parts of a rule
	}
	for _, f := range driver.Fields(v) {
		at := append(slices.Clone(path), f.Key)
		doc := comment{f.Doc, ""}
		if f.Doc != "" {
			doc.about = strings.Join(path[:len(path)-1], ".") + "." + f.Key
		}
		if e, is := v.Interface().(Engine); is && f.Doc != "" {
			doc.about = strings.Join(path[:len(path)-1], ".") + "." + e.Kind + "." + f.Key
		}
		l.add(at, f.Value, reflect.Zero(f.Value.Type()), doc)
	}
}

func (l *keyLister) add(path []string, v, standard reflect.Value, doc comment) {
	at := strings.Join(path, ".")
	key := Key{Key: at, Type: typeOf(v.Type()), Choices: l.choices[at], Doc: doc.text, About: doc.about}
	if key.Choices != nil {
		key.Type = "choice"
	}
	if key.From, key.By = l.from(at); key.From == fromFile {
		key.Line = l.lines[at].number
	}
	if of := kindsOf(v); of != nil {
		key.Kinds = map[string][]string{}
		for _, kind := range of.Kinds() {
			key.Kinds[kind] = keysOf(of, kind)
		}
	}
	if standard.IsValid() {
		key.Default = plainValue(path, standard)
	}
	key.Value = l.hidden.value(plainValue(path, v))
	if isSecret(path) && v.Kind() == reflect.String {
		key.Value = secretSet{v.String() != ""}
	}
	if _, is := key.Value.(secretSet); is {
		key.Type, key.Default = "secret", nil
	}
	if key.Sections = sectioned(v.Type()); key.Sections && v.Len() > 0 {
		if text, err := yaml.Marshal(key.Value); err == nil { // else the form shows JSON
			key.Text = string(text)
		}
	}
	l.all = append(l.all, key)
}

// from returns where the value of a key is from.
func (l *keyLister) from(at string) (from, by string) {
	within := func(key string) bool {
		return key == at || strings.HasPrefix(key, at+".") || strings.HasPrefix(at, key+".")
	}
	for _, key := range slices.Sorted(maps.Keys(l.fixed)) {
		if within(key) {
			return fromFlag, l.fixed[key]
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.env)) {
		if within(key) {
			return fromEnvironment, l.env[key]
		}
	}
	switch at, ok := l.lines[at]; {
	case !ok:
		return fromDefault, ""
	case at.file == l.overlay && l.overlay != "":
		return fromSettings, ""
	}
	return fromFile, ""
}

// plainValue converts a value for JSON, written as in the file, without secrets.
func plainValue(path []string, v reflect.Value) any {
	switch x := v.Interface().(type) {
	case Duration:
		return shortDuration(time.Duration(x))
	case time.Duration:
		return shortDuration(x)
	case fmt.Stringer:
		return x.String()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return plainValue(path, v.Elem())
	case reflect.Slice:
		list := []any{}
		for i := range v.Len() {
			list = append(list, plainValue(append(slices.Clone(path), strconv.Itoa(i)), v.Index(i)))
			if i > 0 && flagOfSecret(fmt.Sprint(v.Index(i-1))) {
				list[i] = secretSet{true}
			}
		}
		return list
	case reflect.Map:
		section := map[string]any{}
		for _, key := range v.MapKeys() {
			section[fmt.Sprint(key)] = plainValue(append(slices.Clone(path), fmt.Sprint(key)), v.MapIndex(key))
		}
		return section
	case reflect.Struct:
		section := map[string]any{}
		for _, f := range driver.Fields(v) {
			if !f.Value.IsZero() {
				section[f.Key] = plainValue(append(slices.Clone(path), f.Key), f.Value)
			}
		}
		return section
	case reflect.String:
		return shownText(path, v.String())
	}
	return v.Interface()
}

// shownText returns a text, or a secretSet for a secret.
func shownText(path []string, text string) any {
	inEnv := len(path) > 1 && path[len(path)-2] == "env"
	if text != "" && (inEnv || isSecret(path) || addressed(path, text) || secretFlag().MatchString(text) && strings.Contains(text, "=")) {
		return secretSet{true}
	}
	return text
}

// shortDuration formats a duration as people write it: 24h, not 24h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if short, ok := strings.CutSuffix(s, "m0s"); ok {
		s = short + "m"
	}
	if short, ok := strings.CutSuffix(s, "h0m"); ok {
		s = short + "h"
	}
	return s
}
