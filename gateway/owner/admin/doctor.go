package admin

import (
	"context"
	"net/http"
	"time"

	"perch/gateway/httpserver"
)

// Finding is one of the doctor's: something that works, or a cause and its cure.
type Finding struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Level string `json:"level"` // ok, warning or problem
	Note  string `json:"note"`
}

// doctorWithin bounds an examination: a server that does not answer takes its time.
const doctorWithin = 3 * time.Minute

// examine has the doctor look at everything, one at a time: it tries the engines,
// which a talk wants for itself.
func (d *API) examine(ctx context.Context) ([]Finding, error) {
	if d.o.Doctor == nil {
		return nil, errNot("a doctor; perch doctor is one")
	}
	if !d.examining.TryLock() {
		return nil, &httpserver.Fault{Word: "busy", HTTP: http.StatusConflict,
			Sentence: "the doctor is looking already; try again when that has ended"}
	}
	defer d.examining.Unlock()
	ctx, cancel := context.WithTimeout(ctx, doctorWithin)
	defer cancel()
	found, err := d.o.Doctor(ctx)
	if found == nil {
		found = []Finding{}
	}
	return found, err
}
