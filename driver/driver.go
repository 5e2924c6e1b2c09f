// Package driver describes the kinds of recognizers, synthesizers and agents that Perch can be
// configured with, and their configuration keys. A driver is declared in the package that
// implements it; cmd/perch/drivers lists all of them.
package driver

import (
	"fmt"
	"slices"
	"strings"
)

// Driver is one kind of engine. An Engine is created from options in the configuration, and
// from a Setup of the appliance.
type Driver[Setup, Engine any] struct {
	Kind string // as the configuration spells it
	// Runs lists what its users run, such as "Home Assistant": rows of the table in docs/engines.md.
	Runs []string
	// Sample has entries for cmd/perch/config/perch.yaml, one per line, in YAML's flow style. A
	// comment may follow.
	Sample string
	// Options returns a pointer to a new struct. Its yaml tags are the keys, its doc tags
	// their documentation.
	Options func() any
	// Check returns the error that New would return. It creates nothing, but reads files named
	// in options. options is a result of Options.
	Check func(options any, s Setup) error
	// New creates the engine. It opens no connection.
	New func(options any, s Setup) (Engine, error)
}

// Of completes the declaration of a driver whose keys are the fields of a K. complete converts
// them to the options of the constructor make. K and O are usually the same type.
func Of[K any, O interface{ Check() error }, S, E any](d Driver[S, E], complete func(K, S) (O, error), make func(O) (E, error)) Driver[S, E] {
	d.Options = func() any { return new(K) }
	d.Check = func(options any, s S) error {
		o, err := complete(*options.(*K), s)
		if err != nil {
			return err
		}
		return o.Check()
	}
	d.New = func(options any, s S) (engine E, err error) {
		o, err := complete(*options.(*K), s)
		if err != nil {
			return engine, err
		}
		return make(o)
	}
	return d
}

// For adapts a driver to another setup.
func For[T, S, E any](d Driver[S, E], setup func(T) S) Driver[T, E] {
	return Driver[T, E]{Kind: d.Kind, Runs: d.Runs, Sample: d.Sample, Options: d.Options,
		Check: func(options any, t T) error { return d.Check(options, setup(t)) },
		New:   func(options any, t T) (E, error) { return d.New(options, setup(t)) }}
}

// List is the drivers that the kind of a configuration entry selects from.
type List[S, E any] []Driver[S, E]

// Find returns the driver of a kind.
func (l List[S, E]) Find(kind string) (d Driver[S, E], found bool) {
	i := slices.IndexFunc(l, func(d Driver[S, E]) bool { return d.Kind == kind })
	if i < 0 {
		return d, false
	}
	return l[i], true
}

// Kinds returns the kinds, sorted.
func (l List[S, E]) Kinds() (kinds []string) {
	for _, d := range l {
		kinds = append(kinds, d.Kind)
	}
	slices.Sort(kinds)
	return kinds
}

// Options returns new options of a kind, or nil if the kind is unknown.
func (l List[S, E]) Options(kind string) any {
	if d, found := l.Find(kind); found {
		return d.Options()
	}
	return nil
}

// Fields returns the options of a kind, with their default values.
func (l List[S, E]) Fields(kind string) []Field {
	return FieldsOf(l.Options(kind))
}

// Check returns the error that New would return.
func (l List[S, E]) Check(kind string, options any, s S) error {
	d, found := l.Find(kind)
	if !found {
		return l.unknown(kind)
	}
	return d.Check(options, s)
}

// New creates the engine of an entry.
func (l List[S, E]) New(kind string, options any, s S) (engine E, err error) {
	d, found := l.Find(kind)
	if !found {
		return engine, l.unknown(kind)
	}
	return d.New(options, s)
}

func (l List[S, E]) unknown(kind string) error {
	return fmt.Errorf("it is one of %s, not %q", strings.Join(l.Kinds(), ", "), kind)
}
