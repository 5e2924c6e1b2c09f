// Package health describes the condition of a part of the appliance, for /ready, the metrics
// and the doctor.
package health

import (
	"time"
)

// Part is the condition of a part of the appliance, such as its MQTT connection or the firmware catalogue.
type Part struct {
	Name  string    `json:"name"`
	OK    bool      `json:"ok"`
	Vital bool      `json:"vital"`          // whether the appliance cannot work while OK is false
	Note  string    `json:"note,omitempty"` // details for the owner, or the cause if OK is false
	Since time.Time `json:"since,omitzero"` // when the condition began; zero if it is not known
}

// Saying returns a copy of the part with a note.
func (p Part) Saying(note string) Part {
	p.Note = note
	return p
}

// Of returns the condition of a part. It is OK, with okNote as its note, if err is nil; otherwise err is
// the cause.
func Of(name string, err error, okNote string) Part {
	if err != nil {
		return Part{Name: name, Note: err.Error()}
	}
	return Part{Name: name, OK: true, Note: okNote}
}
