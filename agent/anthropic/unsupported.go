package anthropic

import (
	"net/http"
	"strings"

	"perch/agent/thinker"
	"perch/remote"
)

// habits records the options that the model has rejected.
type habits struct{ noTemperature, noEffort bool }

// learn records an option that an error rejects, and reports whether to repeat the
// request. Each option is logged once.
func (e *Engine) learn(err error, p thinker.Prompt, used habits) bool {
	r, _, ok := refused(err)
	if !ok || r.Status != http.StatusBadRequest {
		return false
	}
	reason := strings.ToLower(r.Reason)
	next, what := used, ""
	switch {
	case strings.Contains(reason, "thinking") && (strings.Contains(reason, "signature") || strings.Contains(reason, "block")) && e.kept.clear():
		return true // something before the thinking has changed; repeat without it
	case p.Temperature(e.o.Temperature, highest) != nil && !used.noTemperature && strings.Contains(reason, "temperature"):
		next.noTemperature, what = true, "the model takes no temperature; it is left out from now on"
	case e.o.Effort != "" && !used.noEffort && strings.Contains(reason, "effort"):
		next.noEffort, what = true, "the model takes no such effort; it is left out from now on"
	default:
		return false
	}
	e.mu.Lock()
	before := e.habits
	e.habits = habits{
		noTemperature: before.noTemperature || next.noTemperature,
		noEffort:      before.noEffort || next.noEffort,
	}
	news := e.habits != before
	e.mu.Unlock()
	if news {
		e.o.Log.Warn(what, "model", e.o.Model, "url", remote.Address(e.base), "said", e.server.Quote(r.Reason))
	}
	return true
}
