package config

import (
	"fmt"
	"strings"

	"perch/language"
)

// Fault is one fault of a configuration, by its place.
type Fault struct {
	Line    int    `json:"line,omitempty"` // in the text; 0 is that of no line
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
	file    string // in which Line is
}

// fault is one of no place.
func fault(why error) Fault { return Fault{}.says(why) }

// says is the fault with another message.
func (f Fault) says(why error) Fault {
	f.Message = why.Error()
	return f
}

// ofFile is a fault of the file, or of one of its lines.
func (k *checker) ofFile(line int, why error) Fault {
	f := fault(why)
	f.file, f.Line = k.File, line
	return f
}

// String returns the fault with its place.
func (f Fault) String() string {
	text := f.Message
	if f.Key != "" {
		text = f.Key + ": " + text
	}
	switch {
	case f.Line > 0:
		return fmt.Sprintf("%s:%d: %s", f.file, f.Line, text)
	case f.file != "":
		return f.file + ": " + text
	}
	return text
}

// mostFaults bounds those that are shown of one text.
const mostFaults = 200

// shown are as many of the faults as are shown.
func (f Faults) shown() []Fault { return append([]Fault{}, f[:min(len(f), mostFaults)]...) }

// named takes over what an error has of keys; what has none is a fault of the section.
func (k *checker) named(section, under string, err error) {
	all := keyed(err)
	for _, e := range all {
		k.fault(under+inList.Replace(e.Key), e.Why)
	}
	if len(all) == 0 {
		k.failed(section, err)
	}
}

// keyed are the errors of keys within an error.
func keyed(err error) (all []language.KeyError) {
	switch e := err.(type) {
	case language.KeyError:
		return []language.KeyError{e}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, keyed(one)...)
		}
	}
	return all
}

// inList is a place in a list, as errors of rules write it.
var inList = strings.NewReplacer("[", ".", "]", "")
