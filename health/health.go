// Package health describes the condition of a part of the appliance, as /ready, the
// metrics and the doctor show it.
package health

import (
	"time"
)

// Part is a part of the appliance and its condition.
type Part struct {
	Name  string    `json:"name"`
	OK    bool      `json:"ok"`
	Vital bool      `json:"vital"` // without it the appliance does not do its work
	Note  string    `json:"note,omitempty"`
	Since time.Time `json:"since,omitzero"` // when its condition began, where that is known
}

// Saying returns the part with a note.
func (p Part) Saying(note string) Part {
	p.Note = note
	return p
}

// Of returns the condition of a part: the words of its error, or fine.
func Of(name string, err error, fine string) Part {
	if err != nil {
		return Part{Name: name, Note: err.Error()}
	}
	return Part{Name: name, OK: true, Note: fine}
}
