package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Fault is one fault of a configuration, by its place.
type Fault struct {
	Line    int    `json:"line,omitempty"` // in the owner's file; 0 if unknown
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
	file    string // the file that Line is in
	overlay bool   // whether that is the overlay
}

// fault returns a fault without a place.
func fault(err error) Fault { return Fault{}.says(err) }

// says returns the fault with another message.
func (f Fault) says(err error) Fault {
	f.Message = err.Error()
	return f
}

// String returns the fault with its place, and for the overlay with its cure.
func (f Fault) String() string {
	text := f.Message
	if f.Key != "" {
		text = f.Key + ": " + text
	}
	switch {
	case f.Line > 0:
		text = fmt.Sprintf("%s:%d: %s", f.file, f.Line, text)
	case f.file != "":
		text = f.file + ": " + text
	}
	switch key := settable(f.Key); {
	case f.overlay && key != "":
		return text + "; perch unset " + ShellWord(key) + " gives the key back to the configuration file"
	case f.overlay:
		return text + "; Perch writes this file itself: restore it from a backup, or remove it to run with the configuration file alone"
	}
	return text
}

// settable returns the key under which the overlay has a value: for an entry of a list the list's.
func settable(key string) string {
	parts := strings.Split(key, ".")
	for i, part := range parts {
		if _, err := strconv.Atoi(part); err == nil {
			return strings.Join(parts[:i], ".")
		}
	}
	return key
}

// mostFaults bounds the faults of a text that are shown.
const mostFaults = 200

// Faults is an error with all faults of a configuration, a line each.
type Faults []Fault

func (f Faults) Error() string {
	var all []string
	for _, fault := range f {
		all = append(all, fault.String())
	}
	return strings.Join(all, "\n")
}

// ExitCode returns the exit code of the program: 2, as for wrong usage.
func (Faults) ExitCode() int { return 2 }

// in marks the faults of a file as the overlay's.
func (f Faults) in(overlay string) Faults {
	for i := range f {
		f[i].overlay = overlay != "" && f[i].file == overlay
	}
	return f
}

// shown returns at most mostFaults faults, with lines only of the owner's file.
func (f Faults) shown() []Fault {
	all := append([]Fault{}, f[:min(len(f), mostFaults)]...)
	for i := range all {
		if all[i].overlay {
			all[i].Line = 0
		}
	}
	return all
}

// line is a line of a file, from 1.
type line struct {
	file   string
	number int
}
