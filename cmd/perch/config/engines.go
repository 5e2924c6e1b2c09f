package config

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"perch/cmd/perch/drivers"
	"perch/driver"
	"perch/voice"
)

// Engine is an entry of a list of engines. Its kind determines its options.
type Engine struct {
	Kind    string `yaml:"kind"`
	Options any    `yaml:",inline"` // of the kind's driver, a pointer to a struct; nil if there is no such kind
}

// The lists of engines.
type (
	Recognizers  []Engine
	Synthesizers []Engine
	Brains       []Engine
	Models       []Engine
)

// kinds describes the drivers of a list.
type kinds interface {
	Kinds() []string
	Options(kind string) any
	Fields(kind string) []driver.Field
}

func (Recognizers) kinds() kinds { return drivers.Recognizers() }

func (Synthesizers) kinds() kinds { return drivers.Synthesizers() }

func (Brains) kinds() kinds { return drivers.Brains() }

func (Models) kinds() kinds { return drivers.Models() }

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *Recognizers) UnmarshalYAML(n *yaml.Node) error {
	return decodeEngines(n, l.kinds(), (*[]Engine)(l))
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *Synthesizers) UnmarshalYAML(n *yaml.Node) error {
	return decodeEngines(n, l.kinds(), (*[]Engine)(l))
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *Brains) UnmarshalYAML(n *yaml.Node) error {
	return decodeEngines(n, l.kinds(), (*[]Engine)(l))
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *Models) UnmarshalYAML(n *yaml.Node) error {
	return decodeEngines(n, l.kinds(), (*[]Engine)(l))
}

// kindsOf returns the drivers of a list of engines, or nil for any other value.
func kindsOf(list reflect.Value) kinds {
	if l, is := list.Interface().(interface{ kinds() kinds }); is {
		return l.kinds()
	}
	return nil
}

// keysOf returns the keys that an engine of a kind has.
func keysOf(of kinds, kind string) []string {
	keys := []string{"kind"}
	for _, f := range of.Fields(kind) {
		keys = append(keys, f.Key)
	}
	return keys
}

// decodeEngines reads a list of engines. Keys that an engine does not have are left to the check.
func decodeEngines(n *yaml.Node, of kinds, list *[]Engine) error {
	var wrong yaml.TypeError
	if n.Kind != yaml.SequenceNode {
		wrong.Errors = []string{fmt.Sprintf("line %d: cannot unmarshal %s into []Engine", n.Line, n.Tag)}
		return &wrong
	}
	*list = make([]Engine, len(n.Content))
	for i, entry := range n.Content {
		var e struct{ Kind string }
		err := decodeTyped(entry, &e, &wrong)
		(*list)[i] = Engine{e.Kind, of.Options(e.Kind)}
		if err == nil && (*list)[i].Options != nil {
			err = decodeTyped(entry, (*list)[i].Options, &wrong)
		}
		if err != nil {
			return err
		}
	}
	if len(wrong.Errors) > 0 {
		return &wrong
	}
	return nil
}

// decodeTyped reads a node into a value. It adds errors of the values' types to wrong.
func decodeTyped(n *yaml.Node, into any, wrong *yaml.TypeError) error {
	err := n.Decode(into)
	if typed, is := errors.AsType[*yaml.TypeError](err); is {
		wrong.Errors = append(wrong.Errors, typed.Errors...)
		return nil
	}
	return err
}

// speaks reports whether a synthesizer may know a language. Of a server that is not known before it
// is used.
func (e Engine) speaks(language string) bool {
	o, limited := e.Options.(interface{ Speaks(language string) bool })
	return !limited || o.Speaks(language)
}

// hears reports whether a recognizer may know a language.
func (e Engine) hears(language string) bool {
	o, limited := e.Options.(interface{ Hears(language string) bool })
	return !limited || o.Hears(language)
}

// checkedVoice returns the setup with which recognizers and synthesizers are checked.
func checkedVoice(name string) drivers.Voice {
	return drivers.Voice{Setup: voice.Setup{Voice: name, Log: slog.New(slog.DiscardHandler)},
		FindWyoming: func(context.Context) ([]string, error) { return nil, nil }}
}

// checkKeys checks the keys that were set for an engine, and reports whether they all exist.
func checkKeys(k *checker, at string, of kinds, e Engine) (known bool) {
	known = true
	own := keysOf(of, e.Kind)
	for _, key := range k.under(at) {
		switch {
		case slices.Contains(own, key):
		case slices.ContainsFunc(of.Kinds(), func(kind string) bool { return slices.Contains(keysOf(of, kind), key) }):
			if e.Options != nil { // it would have no effect
				k.fault(at+"."+key, fmt.Errorf("%s has no such key; it has %s", e.Kind, strings.Join(own, ", ")))
			}
		default:
			k.fault(at+"."+key, errNoKey)
			known = false
		}
	}
	for _, f := range driver.FieldsOf(e.Options) {
		if d, is := f.Value.Interface().(time.Duration); is && d < 0 {
			k.fault(at+"."+f.Key, fmt.Errorf("%q is no duration such as 60s, 5m or 24h", d))
		}
		for i := 0; sectioned(f.Value.Type()) && f.Value.Kind() == reflect.Slice && i < f.Value.Len(); i++ {
			below := fmt.Sprintf("%s.%s.%d", at, f.Key, i)
			for _, key := range k.under(below) {
				if !slices.ContainsFunc(driver.Fields(f.Value.Index(i)), func(f driver.Field) bool { return f.Key == key }) {
					k.fault(below+"."+key, errNoKey)
					known = false
				}
			}
		}
	}
	return known
}

var errNoKey = errors.New("there is no such key")

// checkList checks the kind and the keys of each engine of a list, and that it can be made.
func checkList[S, E any](k *checker, list string, of driver.List[S, E], all []Engine, setup func(place int) S) {
	if len(all) == 0 && list != "brain_deep" {
		k.fault(list, errors.New("at least one is needed"))
	}
	for i, e := range all {
		at := fmt.Sprintf("%s.%d", list, i)
		k.oneOf(at+".kind", e.Kind, of.Kinds()...)
		if checkKeys(k, at, of, e) && e.Options != nil {
			k.failed(at, of.Check(e.Kind, e.Options, setup(i)))
		}
	}
}
