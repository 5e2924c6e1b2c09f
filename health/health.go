// Package health describes the condition of a part of the appliance, for /ready, the metrics
// and the doctor.
package health

import (
	"time"
)

// Part is a part of the appliance and its condition.
type Part struct {
	Name  string    `json:"name"`
	OK    bool      `json:"ok"`
	Vital bool      `json:"vital"` // the appliance cannot work without it
	Note  string    `json:"note,omitempty"`
	Since time.Time `json:"since,omitzero"` // start of its condition, if known
}

// Saying returns the part with a note.
func (p Part) Saying(note string) Part {
	p.Note = note
	return p
}

// Of returns the condition of a part: the text of err, or fine if err is nil.
func Of(name string, err error, fine string) Part {
	if err != nil {
		return Part{Name: name, Note: err.Error()}
	}
	return Part{Name: name, OK: true, Note: fine}
}
