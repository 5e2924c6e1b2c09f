package admin

import (
	"context"
	"net/http"
	"time"

	"perch/gateway/httpserver"
)

// Finding is a result of the doctor: something that works, or a cause and its cure.
type Finding struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Level string `json:"level"` // ok, warning or problem
	Note  string `json:"note"`
}

// doctorWithin bounds an examination: several servers may not answer.
const doctorWithin = 3 * time.Minute

// examine has the doctor check everything, once at a time, since it uses the engines that a talk needs.
func (a *API) examine(ctx context.Context) ([]Finding, error) {
	if !a.examining.TryLock() {
		return nil, &httpserver.Fault{Word: "busy", HTTP: http.StatusConflict,
			Sentence: "the doctor is looking already; try again when that has ended"}
	}
	defer a.examining.Unlock()
	ctx, cancel := context.WithTimeout(ctx, doctorWithin)
	defer cancel()
	found, err := a.o.Doctor(ctx)
	if found == nil {
		found = []Finding{}
	}
	return found, err
}
