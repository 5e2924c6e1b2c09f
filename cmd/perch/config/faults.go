package config

import (
	"strings"

	"perch/language"
)

// Fault is one fault of a configuration, by its place.
type Fault struct {
	Line    int            `json:"line,omitempty"` // in the text; 0 is that of no line
	Key     string         `json:"key,omitempty"`
	Message string         `json:"message"`
	Said    *language.Said `json:"said,omitempty"` // Message, as other languages have it
	file    string         // in which Line is
}

// fault is one of no place.
func fault(why error) Fault { return Fault{}.says(why) }

// says is the fault with another message.
func (f Fault) says(why error) Fault {
	f.Message, f.Said = why.Error(), language.SaidBy(why)
	return f
}

// ofFile is a fault of the file, or of one of its lines.
func (k *checker) ofFile(line int, why error) Fault {
	f := fault(why)
	f.file, f.Line = k.File, line
	return f
}

// InPlace is the fault with its place.
func (f Fault) InPlace() *language.Said {
	text := language.Sayf("%s", f.Message)
	if f.Said != nil {
		text = f.Said
	}
	if f.Key != "" {
		text = language.Sayf("%s: %w", f.Key, text)
	}
	switch {
	case f.Line > 0:
		return language.Sayf("%s:%d: %w", f.file, f.Line, text)
	case f.file != "":
		return language.Sayf("%s: %w", f.file, text)
	}
	return text
}

// String is the same in English.
func (f Fault) String() string { return f.InPlace().Error() }

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
