package anthropic

import (
	"net/http"
	"strings"

	"perch/agent/thinker"
	"perch/remote"
)

// rejections is a set of options that the model has rejected.
type rejections uint8

const (
	rejectsTemperature rejections = 1 << iota
	rejectsEffort
)

// learnRejection reports whether err means that the model rejects an option of the request,
// or the thinking in the prompt; the caller then repeats the request without the rejected
// part. learnRejection records and logs a rejected option, and marks rejected thinking.
// without holds the options that the request left out.
func (e *Engine) learnRejection(err error, p thinker.Prompt, without rejections) bool {
	r, _, ok := refusalOf(err)
	if !ok || r.Status != http.StatusBadRequest {
		return false
	}
	reason := strings.ToLower(r.Reason)
	var option rejections
	var message string
	switch {
	case strings.Contains(reason, "thinking") && (strings.Contains(reason, "signature") || strings.Contains(reason, "block")) &&
		dropThinking(p):
		return true // the API rejects thinking if the prompt before it has changed
	case p.Temperature(e.o.Temperature, maxTemperature) != nil && without&rejectsTemperature == 0 && strings.Contains(reason, "temperature"):
		option, message = rejectsTemperature, "the model does not accept a temperature; it is left out from now on"
	case e.o.Effort != "" && without&rejectsEffort == 0 && strings.Contains(reason, "effort"):
		option, message = rejectsEffort, "the model does not accept this reasoning_effort; it is left out from now on"
	default:
		return false
	}
	e.mu.Lock()
	isNew := e.rejected&option == 0
	e.rejected |= option
	e.mu.Unlock()
	if isNew {
		e.o.Log.Warn(message, "model", e.o.Model, "url", remote.Address(e.base), "server_message", e.server.Quote(r.Reason))
	}
	return true
}
