package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// list is a flag that may be given more than once.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// newFlags returns a flag set whose errors become usageErrors.
func newFlags(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// parse reads the flags of a command, wherever they stand, and returns the
// arguments, of which there must be that many.
func parse(f *flag.FlagSet, args []string, least, most int) ([]string, error) {
	var rest []string
	for {
		err := f.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			return nil, helpError{options: f}
		}
		if err != nil {
			return nil, usageError(fmt.Sprintf("%s: %v", f.Name(), err))
		}
		if f.NArg() == 0 {
			break
		}
		rest = append(rest, f.Arg(0))
		args = f.Args()[1:]
	}
	if len(rest) < least || len(rest) > most {
		return nil, usageError("it is used as: " + usedAs(f.Name()))
	}
	return rest, nil
}

// usedAs is how a command is written.
func usedAs(name string) string {
	for _, c := range commands() {
		if c.name == name {
			return strings.TrimSpace("perch " + name + " " + c.arguments)
		}
	}
	return "perch " + name
}
