package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Fault is one fault of a configuration.
type Fault struct {
	Line    int    `json:"line,omitempty"` // the line in file; 0 if unknown, or if the fault is not in one line
	Key     string `json:"key,omitempty"`  // the path of the key; empty if unknown, or if the fault is not in one key
	Message string `json:"message"`

	file    string // path of the file with the fault; may be empty
	overlay bool   // whether file is the overlay, the file of changed settings
}

// fault returns a fault whose line and key are unknown.
func fault(err error) Fault { return Fault{Message: err.Error()} }

// withMessage returns a copy of f whose message is the text of err.
func (f Fault) withMessage(err error) Fault {
	f.Message = err.Error()
	return f
}

// String returns the message with file, line and key. For a fault of the overlay, the text also states how
// to correct the fault.
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
	switch key := overlayKey(f.Key); {
	case f.overlay && key != "":
		return text + "; perch unset " + ShellWord(key) + " removes this setting, so that the configuration file decides again"
	case f.overlay:
		return text + "; Perch writes this file itself: restore it from a backup, or remove it to run with the configuration file alone"
	}
	return text
}

// overlayKey returns the key that perch unset must remove from the overlay to undo a setting of key. For
// a key in a list this is the key of the list, since the overlay contains only whole lists.
func overlayKey(key string) string {
	parts := strings.Split(key, ".")
	for i, part := range parts {
		if _, err := strconv.Atoi(part); err == nil {
			return strings.Join(parts[:i], ".")
		}
	}
	return key
}

// maxShownFaults is the maximum number of faults that the API returns for a configuration.
const maxShownFaults = 200

// Faults is an error that consists of the faults that were found in a configuration.
type Faults []Fault

// Error returns the faults, one on each line.
func (f Faults) Error() string {
	var lines []string
	for _, fault := range f {
		lines = append(lines, fault.String())
	}
	return strings.Join(lines, "\n")
}

// ExitCode returns the exit code of the program: 2, as for wrong usage.
func (Faults) ExitCode() int { return 2 }

// markOverlay sets the field overlay of each fault. path is the path of the overlay; it may be empty.
func (f Faults) markOverlay(path string) {
	for i := range f {
		f[i].overlay = path != "" && f[i].file == path
	}
}

// forAPI returns a copy of the first maxShownFaults faults. It removes the line numbers of faults in the
// overlay, because clients of the API would take them for lines of the owner's file.
func (f Faults) forAPI() []Fault {
	faults := append([]Fault{}, f[:min(len(f), maxShownFaults)]...)
	for i := range faults {
		if faults[i].overlay {
			faults[i].Line = 0
		}
	}
	return faults
}

// line is a line of a file. Numbers begin at 1; 0 means no particular line.
type line struct {
	file   string
	number int
}
