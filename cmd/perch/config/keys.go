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

// Key is a key of the configuration and its value, as a form shows them.
type Key struct {
	Key     string   `json:"key"`               // the path of the key
	Type    string   `json:"type"`              // a result of typeOf, "choice" or "secret"
	Choices []string `json:"choices,omitempty"` // the possible values of a "choice"
	Value   any      `json:"value"`             // {"set": true} or {"set": false} for a secret
	Default any      `json:"default"`
	// Sections reports whether Value is a mapping or a list of mappings. Text is then Value in YAML, or empty if
	// Value is empty.
	Sections bool   `json:"sections,omitempty"`
	Text     string `json:"text,omitempty"`
	From     string `json:"from"`           // where the value is set
	By       string `json:"by,omitempty"`   // the variable, the app's option or the flag that sets the value
	Line     int    `json:"line,omitempty"` // the line of the owner's file that sets the value
	// InFile reports whether the owner's file sets the key too, although the value is from the overlay.
	InFile bool   `json:"in_file,omitempty"`
	Doc    string `json:"doc,omitempty"`
	// About is the key under which language/TAG/keys.json has the translation of Doc. Several keys
	// may share one Doc.
	About string `json:"about,omitempty"`
	// Kinds has the keys of each kind of engine that a list of engines may contain.
	Kinds map[string][]string `json:"kinds,omitempty"`
	// Restart reports whether a change takes effect only after a restart. Package settings sets it.
	Restart bool `json:"restart,omitempty"`
	description
}

// Values of Key.From.
const (
	fromFile        = "file"        // the owner's file
	fromSettings    = "settings"    // the overlay
	fromEnvironment = "environment" // a variable, or an option of the app
	fromFlag        = "flag"
	fromDefault     = "default"
)

// Keys returns the paths of all keys, except those in entries of lists.
func Keys() (names []string) {
	c := Default()
	eachKey("", reflect.ValueOf(&c).Elem(), func(key string, _ reflect.Value) { names = append(names, key) })
	return names
}

// Changed returns the keys whose values differ between two configurations. A nil list or map equals
// an empty one.
func Changed(a, b *Config) (keys []string) {
	values := map[string]reflect.Value{}
	eachKey("", reflect.ValueOf(a).Elem(), func(key string, v reflect.Value) { values[key] = v })
	eachKey("", reflect.ValueOf(b).Elem(), func(key string, v reflect.Value) {
		bothEmpty := (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len()+values[key].Len() == 0
		if !bothEmpty && !reflect.DeepEqual(values[key].Interface(), v.Interface()) {
			keys = append(keys, key)
		}
	})
	return keys
}

// listKeys returns all keys of a configuration, including those in entries of lists except rules. fixed maps
// keys to the command-line flags that set them.
func listKeys(k *checker, c *Config, defaults Config, fixed map[string]string, hidden secretMasker) []Key {
	l := keyLister{checker: k, fixed: fixed, hidden: hidden, docs: sampleDocs()}
	l.list(reflect.ValueOf(c).Elem(), reflect.ValueOf(&defaults).Elem())
	return l.keys
}

// keyLister collects the keys of a configuration.
type keyLister struct {
	*checker
	fixed  map[string]string  // maps keys to the command-line flags that set them
	hidden secretMasker       // texts that must not be shown
	docs   map[string]comment // maps keys to their documentation
	keys   []Key
}

// list adds the keys of a configuration v and of the entries of its lists.
func (l *keyLister) list(v, defaultConfig reflect.Value) {
	defaults := map[string]reflect.Value{}
	eachKey("", defaultConfig, func(key string, v reflect.Value) { defaults[key] = v })
	eachKey("", v, func(key string, v reflect.Value) {
		path := strings.Split(key, ".")
		l.add(path, v, defaults[key], l.docs[key], descriptions()[key])
		if v.Kind() != reflect.Slice || v.Type().Elem().Kind() != reflect.Struct {
			return
		}
		for i := range v.Len() {
			l.addEntry(append(slices.Clone(path), strconv.Itoa(i)), v.Index(i))
		}
	})
}

// addEntry adds the keys of an entry of a list. For an engine it adds the keys of the engine's kind. It adds
// no keys for a rule.
func (l *keyLister) addEntry(path []string, v reflect.Value) {
	if path[0] == "rules" {
		return // a form shows a rule as a whole
	}
	for _, f := range driver.Fields(v) {
		keyPath := append(slices.Clone(path), f.Key)
		doc := comment{f.Doc, ""}
		if f.Doc != "" {
			doc.about = strings.Join(path[:len(path)-1], ".") + "." + f.Key
		}
		if e, ok := v.Interface().(Engine); ok && f.Doc != "" {
			doc.about = strings.Join(path[:len(path)-1], ".") + "." + e.Kind + "." + f.Key
		}
		l.add(keyPath, f.Value, reflect.Zero(f.Value.Type()), doc, describe(f, descriptions()[strings.Join(path[:len(path)-1], ".")]))
		if added := &l.keys[len(l.keys)-1]; len(f.Choices) > 0 {
			added.Type, added.Choices = "choice", f.Choices
		}
	}
}

// add adds the key at path, which has the value v. defaultValue may be the zero reflect.Value.
func (l *keyLister) add(path []string, v, defaultValue reflect.Value, doc comment, d description) {
	name := strings.Join(path, ".")
	key := Key{Key: name, Type: typeOf(v.Type()), Choices: l.choices[name], Doc: doc.text, About: doc.about, description: d}
	if key.Choices != nil {
		key.Type = "choice"
	}
	if key.From, key.By = l.from(name); key.From == fromFile {
		key.Line = l.lines[name].number
	}
	key.InFile = key.From == fromSettings && l.covered[name]
	if drivers := kindsOf(v); drivers != nil {
		key.Kinds = map[string][]string{}
		for _, kind := range drivers.Kinds() {
			key.Kinds[kind] = keysOf(drivers, kind)
		}
	}
	if defaultValue.IsValid() {
		key.Default = plainValue(path, defaultValue)
	}
	key.Value = l.hidden.mask(plainValue(path, v))
	if isSecret(path) && v.Kind() == reflect.String {
		key.Value = maskedSecret{v.String() != ""}
	}
	if _, ok := key.Value.(maskedSecret); ok {
		key.Type, key.Default = "secret", nil
	}
	if key.Sections = hasSections(v.Type()); key.Sections && v.Len() > 0 {
		if text, err := yaml.Marshal(key.Value); err == nil { // without Text, the form shows JSON
			key.Text = string(text)
		}
	}
	l.keys = append(l.keys, key)
}

// from returns where a key is set, as in Key.From, and the flag, the variable or the app's option that sets the
// key, the section that contains the key, or a part of the key's value.
func (l *keyLister) from(name string) (from, by string) {
	overlaps := func(key string) bool {
		return key == name || strings.HasPrefix(key, name+".") || strings.HasPrefix(name, key+".")
	}
	for _, key := range slices.Sorted(maps.Keys(l.fixed)) {
		if overlaps(key) {
			return fromFlag, l.fixed[key]
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.env)) {
		if overlaps(key) {
			return fromEnvironment, l.env[key]
		}
	}
	switch line, ok := l.lines[name]; {
	case !ok:
		return fromDefault, ""
	case line.file == l.overlay && l.overlay != "":
		return fromSettings, ""
	}
	return fromFile, ""
}

// plainValue converts the value of a key to types that encoding/json writes as the owner's file does.
// It replaces secrets by maskedSecret.
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
			if i > 0 && isSecretFlag(fmt.Sprint(v.Index(i-1))) {
				list[i] = maskedSecret{true}
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
		return plainText(path, v.String())
	}
	return v.Interface()
}

// plainText returns the text of a key, or a maskedSecret if it is secret.
func plainText(path []string, text string) any {
	inEnv := len(path) > 1 && path[len(path)-2] == "env"
	if text != "" && (inEnv || isSecret(path) || isSecretAddress(path, text) || secretFlag().MatchString(text) && strings.Contains(text, "=")) {
		return maskedSecret{true}
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
