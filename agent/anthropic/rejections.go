package anthropic

import (
	"net/http"
	"strings"

	"perch/agent/thinker"
	"perch/remote"
)

// rejections are the options that the model has rejected.
type rejections uint8

const (
	rejectsTemperature rejections = 1 << iota
	rejectsEffort
)

// learn records an option that an error rejects, and reports whether to repeat the
// request. Each option is logged once.
func (e *Engine) learn(err error, p thinker.Prompt, without rejections) bool {
	r, _, ok := refused(err)
	if !ok || r.Status != http.StatusBadRequest {
		return false
	}
	reason := strings.ToLower(r.Reason)
	var option rejections
	var what string
	switch {
	case strings.Contains(reason, "thinking") && (strings.Contains(reason, "signature") || strings.Contains(reason, "block")) &&
		refuseThinking(p):
		return true // something before the thinking has changed; repeat without it
	case p.Temperature(e.o.Temperature, highest) != nil && without&rejectsTemperature == 0 && strings.Contains(reason, "temperature"):
		option, what = rejectsTemperature, "the model takes no temperature; it is left out from now on"
	case e.o.Effort != "" && without&rejectsEffort == 0 && strings.Contains(reason, "effort"):
		option, what = rejectsEffort, "the model takes no such effort; it is left out from now on"
	default:
		return false
	}
	e.mu.Lock()
	news := e.rejected&option == 0
	e.rejected |= option
	e.mu.Unlock()
	if news {
		e.o.Log.Warn(what, "model", e.o.Model, "url", remote.Address(e.base), "said", e.server.Quote(r.Reason))
	}
	return true
}
