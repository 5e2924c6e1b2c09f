// Package driver describes the kinds of recognizers, synthesizers and brains that a configuration
// can choose, and their configuration keys. Each package that implements an engine declares its
// driver; cmd/perch/drivers lists all drivers.
package driver

import (
	"fmt"
	"slices"
	"strings"
)

// Driver is one kind of engine. An Engine is created from options, which the configuration sets,
// and a Setup, which the appliance provides.
type Driver[Setup, Engine any] struct {
	Kind string // value of the key kind in the configuration
	// Runs lists the programs or services that users of the engine run, such as "Home Assistant".
	// They become rows of the table in docs/engines.md.
	Runs []string
	// Summary tells owners in one sentence what the engine is and where it runs.
	Summary string
	// Billed reports whether the engine is a service that bills each use. It is false for engines that can
	// also run at home.
	Billed bool
	// Sample holds sample entries for cmd/perch/config/perch.yaml, one per line, in YAML's flow
	// style, each with an optional comment.
	Sample string
	// Options returns a pointer to a new struct. Its yaml tags are the configuration keys, its
	// doc tags their documentation.
	Options func() any
	// Check returns the error that New would return, without creating an engine. It may read
	// files that the options name. options was returned by Options. If the text of the error
	// contains keys of options, the first of them is the wrong one.
	Check func(options any, s Setup) error
	// New creates the engine. It opens no connection.
	New func(options any, s Setup) (Engine, error)
}

// Of returns d with Options, Check and New set. The configuration keys are the fields of K. complete
// converts a K to the options of make, the engine's constructor. K and O are usually the same type.
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

// For returns a driver like d that accepts a T as its setup. The function setup converts a T to d's type
// of setup.
func For[T, S, E any](d Driver[S, E], setup func(T) S) Driver[T, E] {
	return Driver[T, E]{Kind: d.Kind, Runs: d.Runs, Summary: d.Summary, Billed: d.Billed, Sample: d.Sample, Options: d.Options,
		Check: func(options any, t T) error { return d.Check(options, setup(t)) },
		New:   func(options any, t T) (E, error) { return d.New(options, setup(t)) }}
}

// List holds drivers. An entry of the configuration selects one by its kind.
type List[S, E any] []Driver[S, E]

// Find returns the driver of a kind.
func (l List[S, E]) Find(kind string) (d Driver[S, E], found bool) {
	i := slices.IndexFunc(l, func(d Driver[S, E]) bool { return d.Kind == kind })
	if i < 0 {
		return d, false
	}
	return l[i], true
}

// Summary returns the summary of a kind, and whether it bills each use.
func (l List[S, E]) Summary(kind string) (summary string, billed bool) {
	d, _ := l.Find(kind)
	return d.Summary, d.Billed
}

// Kinds returns the sorted kinds of all drivers.
func (l List[S, E]) Kinds() (kinds []string) {
	for _, d := range l {
		kinds = append(kinds, d.Kind)
	}
	slices.Sort(kinds)
	return kinds
}

// Options returns new options for a kind, or nil if no driver has that kind.
func (l List[S, E]) Options(kind string) any {
	if d, found := l.Find(kind); found {
		return d.Options()
	}
	return nil
}

// Fields returns the options of a kind, with the values of a new options struct.
func (l List[S, E]) Fields(kind string) []Field {
	return FieldsOf(l.Options(kind))
}

// Check returns the error that New would return, without creating an engine.
func (l List[S, E]) Check(kind string, options any, s S) error {
	d, found := l.Find(kind)
	if !found {
		return l.errUnknown(kind)
	}
	return d.Check(options, s)
}

// New creates an engine of a kind.
func (l List[S, E]) New(kind string, options any, s S) (engine E, err error) {
	d, found := l.Find(kind)
	if !found {
		return engine, l.errUnknown(kind)
	}
	return d.New(options, s)
}

// errUnknown returns the error for a kind that no driver has.
func (l List[S, E]) errUnknown(kind string) error {
	return fmt.Errorf("it must be one of %s, not %q", strings.Join(l.Kinds(), ", "), kind)
}
