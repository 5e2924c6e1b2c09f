// Package driver describes what Perch can be set up with: kinds of recognizers, synthesizers and
// brains, with the keys that each has in the configuration. A driver is declared in the package
// that implements it; cmd/perch/drivers lists all of them.
package driver

import (
	"fmt"
	"slices"
	"strings"
)

// Driver is one kind of engine. An Engine is made of options, which the configuration has, and
// of a Setup, which is what the appliance gives it besides.
type Driver[Setup, Engine any] struct {
	Kind string // as the configuration spells it
	// Runs is what its users run, such as "Home Assistant": rows of the table in docs/engines.md.
	Runs []string
	// Sample are entries for packaging/perch.yaml, one a line, in YAML's flow style. A comment
	// may follow.
	Sample string
	// Options returns a pointer to a struct. Its yaml tags are the keys, its doc tags say what
	// they mean.
	Options func() any
	// Check returns what New would refuse. It makes nothing, but reads the files that options
	// name. Options are those of the Options function.
	Check func(options any, s Setup) error
	// New makes the engine. It makes no connection.
	New func(options any, s Setup) (Engine, error)
}

// Of completes the declaration of a driver. K is the struct with its keys, and complete turns a K into
// the options of the constructor make. K and O are mostly the same type.
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

// For returns a driver as it is used by those who have another setup.
func For[T, S, E any](d Driver[S, E], setup func(T) S) Driver[T, E] {
	return Driver[T, E]{Kind: d.Kind, Runs: d.Runs, Sample: d.Sample, Options: d.Options,
		Check: func(options any, t T) error { return d.Check(options, setup(t)) },
		New:   func(options any, t T) (E, error) { return d.New(options, setup(t)) }}
}

// List are the drivers among which the kind of an entry of the configuration chooses.
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

// Options returns new options of a kind, or nil if there is no such kind.
func (l List[S, E]) Options(kind string) any {
	if d, found := l.Find(kind); found {
		return d.Options()
	}
	return nil
}

// Fields returns the options that a kind has, with the values of a new one.
func (l List[S, E]) Fields(kind string) []Field {
	return FieldsOf(l.Options(kind))
}

// Check returns what New would refuse.
func (l List[S, E]) Check(kind string, options any, s S) error {
	d, found := l.Find(kind)
	if !found {
		return l.unknown(kind)
	}
	return d.Check(options, s)
}

// New makes the engine of an entry.
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
