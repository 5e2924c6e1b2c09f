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
	"unicode"

	"go.yaml.in/yaml/v3"

	"perch/cmd/perch/drivers"
	"perch/driver"
	"perch/voice"
)

// Engine is an entry of a list of engines. Its kind determines its options.
type Engine struct {
	Kind    string `yaml:"kind"`
	Options any    `yaml:",inline"` // a pointer to the driver's options; nil if there is no such kind
}

// The lists of engines.
type (
	Recognizers  []Engine
	Synthesizers []Engine
	Brains       []Engine
	Models       []Engine
)

// kinds describes the kinds of engines that a list in the configuration may contain. Each kind has a
// driver.
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

// kindsOf returns the kinds that a list of engines may contain, or nil for any other value.
func kindsOf(list reflect.Value) kinds {
	if l, ok := list.Interface().(interface{ kinds() kinds }); ok {
		return l.kinds()
	}
	return nil
}

// keysOf returns the keys that an engine of a kind may have.
func keysOf(drivers kinds, kind string) []string {
	keys := []string{"kind"}
	for _, f := range drivers.Fields(kind) {
		keys = append(keys, f.Key)
	}
	return keys
}

// decodeEngines decodes a list of engines. It ignores unknown keys, which checkKeys reports.
func decodeEngines(n *yaml.Node, drivers kinds, list *[]Engine) error {
	var typeErr yaml.TypeError
	if n.Kind != yaml.SequenceNode {
		typeErr.Errors = []string{fmt.Sprintf("line %d: cannot unmarshal %s into []Engine", n.Line, n.Tag)}
		return &typeErr
	}
	*list = make([]Engine, len(n.Content))
	for i, entry := range n.Content {
		var e struct{ Kind string }
		err := decodeNode(entry, &e, &typeErr)
		(*list)[i] = Engine{e.Kind, drivers.Options(e.Kind)}
		if err == nil && (*list)[i].Options != nil {
			err = decodeNode(entry, (*list)[i].Options, &typeErr)
		}
		if err != nil {
			return err
		}
	}
	if len(typeErr.Errors) > 0 {
		return &typeErr
	}
	return nil
}

// decodeNode decodes a node into the value that into points to. It adds errors about the types of
// values to typeErr, and returns other errors.
func decodeNode(n *yaml.Node, into any, typeErr *yaml.TypeError) error {
	err := n.Decode(into)
	if e, ok := errors.AsType[*yaml.TypeError](err); ok {
		typeErr.Errors = append(typeErr.Errors, e.Errors...)
		return nil
	}
	return err
}

// speaks reports whether a synthesizer may support a language. It returns true for servers, whose
// languages are unknown until they are used.
func (e Engine) speaks(language string) bool {
	o, limited := e.Options.(interface{ Speaks(language string) bool })
	return !limited || o.Speaks(language)
}

// hears reports whether a recognizer may support a language.
func (e Engine) hears(language string) bool {
	o, limited := e.Options.(interface{ Hears(language string) bool })
	return !limited || o.Hears(language)
}

// voiceSetup returns the setup for checks of recognizers and synthesizers. name is the voice for a
// synthesizer, or "" for the voice in its options.
func voiceSetup(name string) drivers.Voice {
	return drivers.Voice{Setup: voice.Setup{Voice: name, Log: slog.New(slog.DiscardHandler)},
		FindWyoming: func(context.Context) ([]string, error) { return nil, nil }}
}

// checkKeys checks the keys that were set for the engine at path, and the durations among its options.
// It reports whether every key belongs to some kind of engine.
func checkKeys(k *checker, path string, drivers kinds, e Engine) (exist bool) {
	exist = true
	ownKeys := keysOf(drivers, e.Kind)
	for _, key := range k.keysBelow(path) {
		switch {
		case slices.Contains(ownKeys, key):
		case slices.ContainsFunc(drivers.Kinds(), func(kind string) bool { return slices.Contains(keysOf(drivers, kind), key) }):
			if e.Options != nil { // an unknown kind is a fault already
				k.fault(path+"."+key, fmt.Errorf("%s has no such key; it has %s", e.Kind, strings.Join(ownKeys, ", ")))
			}
		default:
			k.fault(path+"."+key, errNoKey)
			exist = false
		}
	}
	for _, f := range driver.FieldsOf(e.Options) {
		if d, ok := f.Value.Interface().(time.Duration); ok && d < 0 {
			k.fault(path+"."+f.Key, fmt.Errorf("%q is not a duration such as 60s, 5m or 24h", d))
		}
		for i := 0; hasSections(f.Value.Type()) && f.Value.Kind() == reflect.Slice && i < f.Value.Len(); i++ {
			entry := fmt.Sprintf("%s.%s.%d", path, f.Key, i)
			for _, key := range k.keysBelow(entry) {
				if !slices.ContainsFunc(driver.Fields(f.Value.Index(i)), func(f driver.Field) bool { return f.Key == key }) {
					k.fault(entry+"."+key, errNoKey)
					exist = false
				}
			}
		}
	}
	return exist
}

var errNoKey = errors.New("there is no such key")

// wrongOption returns the path of the option that err, an error of an engine's check, is about: the option
// whose key is the first in the text of err. The word "address" means the key url. wrongOption returns the
// engine's path if the text contains no key.
func wrongOption(path string, options []driver.Field, err error) string {
	if err == nil {
		return path
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(err.Error()), func(r rune) bool { return r != '_' && !unicode.IsLetter(r) }) {
		if word == "address" {
			word = "url"
		}
		if slices.ContainsFunc(options, func(f driver.Field) bool { return f.Key == word }) {
			return path + "." + word
		}
	}
	return path
}

// checkList checks a list of engines: the kind and the keys of each engine, and the error of its driver's
// Check with setup(i), where i is the index of the engine. Only the list brain_deep may be empty.
func checkList[S, E any](k *checker, list string, drivers driver.List[S, E], engines []Engine, setup func(i int) S) {
	if len(engines) == 0 && list != "brain_deep" {
		k.fault(list, errors.New("at least one is needed"))
	}
	for i, e := range engines {
		path := fmt.Sprintf("%s.%d", list, i)
		k.oneOf(path+".kind", e.Kind, drivers.Kinds()...)
		if checkKeys(k, path, drivers, e) && e.Options != nil {
			err := drivers.Check(e.Kind, e.Options, setup(i))
			k.failed(wrongOption(path, driver.FieldsOf(e.Options), err), err)
		}
	}
}
