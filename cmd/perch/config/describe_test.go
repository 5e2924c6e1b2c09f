package config

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"perch/driver"
	"perch/language"
	"perch/must"
)

// TestDescriptions checks that each key is in an existing group, and that a key without tags is in the group
// advanced with its name as its label.
func TestDescriptions(t *testing.T) {
	if len(descriptions()) != len(Keys()) {
		t.Errorf("%d of %d keys are described", len(descriptions()), len(Keys()))
	}
	for key, d := range descriptions() {
		if !slices.ContainsFunc(Groups(), func(g Group) bool { return g.Name == d.Group }) || d.Label == "" {
			t.Errorf("%s: %+v", key, d)
		}
	}
	var added struct {
		Section struct {
			LoudAlarm int `yaml:"loud_alarm"`
		} `yaml:"section" group:"quiet" label:"Alarms"`
		NewKey bool `yaml:"new_key"`
	}
	all := map[string]description{}
	addDescriptions(all, "", description{}, reflect.ValueOf(&added).Elem())
	want := map[string]description{"new_key": {Group: otherKeys, Label: "New key"},
		"section.loud_alarm": {Group: "quiet", Label: "Loud alarm", Under: &heading{"section", "Alarms"}}}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("%+v", all)
	}
	quiet := descriptions()["behaviours.quiet.hours"]
	if quiet.Group != "quiet" || quiet.Format != "hours" || !strings.Contains(quiet.Words, "at night") {
		t.Errorf("%+v", quiet)
	}
	f := driver.Fields(reflect.ValueOf(&Config{}))[0]
	if f.Tag = `options:"open=May talk;code=Must wait"`; !slices.Equal(describe(f, description{}).Options, []option{{"open", "May talk"}, {"code", "Must wait"}}) {
		t.Errorf("%+v", describe(f, description{}).Options)
	}
}

// TestLabels checks the form of labels.json of each language. A missing label is no failure, because the page then
// shows the English one. "make translations" prints missing labels, and labels of unknown keys.
func TestLabels(t *testing.T) {
	known := map[string]bool{}
	for key, d := range descriptions() {
		known[key] = true
		if d.Under != nil {
			known[d.Under.Key] = true
		}
		for _, o := range d.Options {
			known[key+"="+o.Value] = true
		}
	}
	for _, g := range Groups() {
		known["group."+g.Name], known["about."+g.Name] = true, true
	}
	for _, tag := range language.All()[1:] {
		text, err := os.ReadFile(filepath.Join("../../../language", string(tag), "labels.json"))
		var own map[string][]string // each value is a label, optionally followed by other words for searching
		if err == nil {
			err = json.Unmarshal(text, &own)
		}
		must.Succeed(t, err)
		for _, key := range slices.Sorted(maps.Keys(own)) {
			texts := own[key]
			if !known[key] && !strings.HasPrefix(key, "*.") {
				t.Logf("%s labels %s, which is no key", tag, key)
			}
			if len(texts) == 0 || len(texts) > 2 || strings.TrimSpace(texts[0]) == "" {
				t.Errorf("%s: %s has the texts %q", tag, key, texts)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(known)) {
			if _, usual := own["*"+key[max(0, strings.LastIndexByte(key, '.')):]]; own[key] == nil && !usual {
				t.Logf("%s does not label %s", tag, key)
			}
		}
	}
}
