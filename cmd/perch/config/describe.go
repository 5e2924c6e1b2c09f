package config

import (
	"cmp"
	"reflect"
	"strings"
	"sync"

	"perch/device"
	"perch/driver"
)

// Group is a group of keys on the page. language/TAG/labels.json has the translations of Label and About.
type Group struct {
	Name  string `json:"name"` // the value of the tag group
	Label string `json:"label"`
	About string `json:"about"`
}

// otherKeys is the name of the group of all keys without a tag group.
const otherKeys = "advanced"

// Groups returns the groups in the order of the page.
func Groups() []Group {
	return []Group{
		{"languages", "Languages", "What people and robots speak, and their time zone"},
		{"voice", "Voice", "How robots hear, and how they sound"},
		{"quiet", "Quiet hours", "When no robot speaks or moves by itself"},
		{"greeting", "Greeting", "Whom robots greet, when, and with which words"},
		{"behaviour", "Behaviour", "Moods, glances, and what robots do by themselves"},
		{"privacy", "Privacy", "What is kept of what was said, and what new robots may do"},
		{"home", "Home Assistant", "How Perch and Home Assistant find each other"},
		{"network", "Network", "Names, addresses and encryption"},
		{otherKeys, "Advanced", "Everything else, and the configuration as text"},
	}
}

// description is what the page says about a key besides its documentation. It comes from optional tags of
// the key's field, and from commonKeys. A key inherits the group of its section.
type description struct {
	Group string `json:"group"`
	// Label is a name of the key for people: the tag label, or else made from the key's own name.
	Label string `json:"label"`
	// Under is the innermost section that has a label and contains the key; nil if there is none.
	Under *heading `json:"under,omitempty"`
	// Words is the tag words: further names, for searching.
	Words string `json:"words,omitempty"`
	// Format is "timezone", from the tag format, or comes from the type: "hours" or "languages".
	Format string `json:"format,omitempty"`
	// Unit is the tag unit: the symbol of a number's unit.
	Unit string `json:"unit,omitempty"`
	// Options holds the values and labels in the tag options, such as "open=May talk;code=Must wait".
	Options []option `json:"options,omitempty"`
}

type heading struct {
	Key   string `json:"key"`
	Label string `json:"label"`
}

type option struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// commonKeys returns the labels and search words of keys that have the same meaning in many sections, by the
// name of the key.
var commonKeys = sync.OnceValue(func() map[string]description {
	return map[string]description{
		"after_talk": {Label: "Pause after a talk"}, "enabled": {Label: "On", Words: "off disable"}, "every": {Label: "At most once in"}, "key_file": {Label: "File with the key"},
		"key": {Label: "Key", Words: "password token"}, "listen": {Label: "Address", Words: "port"}, "pitch": {Label: "Angle upwards"}, "speed": {Label: "Speed", Words: "faster slower"},
		"url": {Label: "Address"}, "voice": {Label: "Voice", Words: "change the voice"}, "within": {Label: "Longest wait"}, "yaw": {Label: "Angle to the side"},
	}
})

// describe returns the description of a field in a section.
func describe(f driver.Field, section description) description {
	d := description{Group: cmp.Or(f.Tag.Get("group"), section.Group, otherKeys), Under: section.Under, Words: cmp.Or(f.Tag.Get("words"), commonKeys()[f.Key].Words),
		Format: f.Tag.Get("format"), Unit: f.Tag.Get("unit")}
	name := strings.ReplaceAll(f.Key, "_", " ")
	d.Label = cmp.Or(f.Tag.Get("label"), commonKeys()[f.Key].Label, strings.ToUpper(name[:1])+name[1:])
	switch f.Value.Interface().(type) {
	case device.Hours:
		d.Format = "hours"
	case Languages:
		d.Format = "languages"
	}
	for text := range strings.SplitSeq(f.Tag.Get("options"), ";") {
		if value, label, ok := strings.Cut(text, "="); ok {
			d.Options = append(d.Options, option{value, label})
		}
	}
	return d
}

// descriptions returns the descriptions of all keys, except those in entries of lists.
var descriptions = sync.OnceValue(func() map[string]description {
	all := map[string]description{}
	c := Default()
	addDescriptions(all, "", description{}, reflect.ValueOf(&c).Elem())
	return all
})

// addDescriptions adds the descriptions of the keys in the section v.
func addDescriptions(all map[string]description, path string, section description, v reflect.Value) {
	for _, f := range driver.Fields(v) {
		d, key := describe(f, section), strings.TrimPrefix(path+"."+f.Key, ".")
		if f.Value.Kind() != reflect.Struct || typeOf(f.Value.Type()) != "" {
			all[key] = d
			continue
		}
		if label := f.Tag.Get("label"); label != "" {
			d.Under = &heading{key, label}
		}
		addDescriptions(all, key, d, f.Value)
	}
}
