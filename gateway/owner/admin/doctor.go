package admin

import (
	"context"
	"net/http"
	"time"

	"perch/gateway/httpserver"
)

// Finding is a result of the doctor, which checks the appliance: something that works, or a fault and its remedy.
type Finding struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Level string `json:"level"` // "ok", "warning" or "problem"
	Note  string `json:"note"`
}

// doctorTimeout bounds an examination. It is long because several servers may not respond.
const doctorTimeout = 3 * time.Minute

// examine makes the doctor check the whole appliance. Only one examination can run at a time, because it uses the
// engines that conversations need.
func (a *API) examine(ctx context.Context) ([]Finding, error) {
	if !a.examining.TryLock() {
		return nil, &httpserver.Fault{Word: "busy", HTTP: http.StatusConflict,
			Sentence: "the doctor is running already; try again when it has finished"}
	}
	defer a.examining.Unlock()
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	found, err := a.o.Doctor(ctx)
	if found == nil {
		found = []Finding{}
	}
	return found, err
}
