package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"perch/agent/refusal"
	"perch/agent/thinker"
	"perch/limit"
	"perch/remote"
)

// refused returns the refusal in an error, or nil.
func refused(err error) *remote.Fault {
	if f, ok := errors.AsType[*remote.Fault](err); ok && f.Status > 0 {
		return f
	}
	return nil
}

// pause returns how long the server asks to wait before a retry. A date, which few
// servers send, is ignored: it is further away than a turn waits.
func pause(r *remote.Refusal) (time.Duration, bool) {
	if r.Status != http.StatusTooManyRequests && r.Status != http.StatusServiceUnavailable {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(r.After, 64)
	if err != nil || !(seconds >= 0 && seconds <= limit.Moment.Seconds()) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// explain returns a one-sentence error with cause and cure.
func (e *Engine) explain(ctx context.Context, err error) error {
	var fault *remote.Fault
	r := refused(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r != nil:
		return e.refusal(ctx, r)
	case errors.As(err, &fault):
		return fault
	case errors.Is(err, errGarbage):
		return e.server.Fault(err.Error() + "; is it the base address, with its /v1?")
	case errors.Is(err, remote.ErrTooLong):
		return e.server.Fault("sends a line that is longer than 1 MB; is it the base address, with its /v1?")
	}
	return e.server.Unreachable(err, errors.Is(err, io.ErrUnexpectedEOF))
}

// refusal explains errors that are specific to language models.
func (e *Engine) refusal(ctx context.Context, r *remote.Fault) error {
	reason := strings.ToLower(r.Reason)
	said := refusal.Refusal{Status: r.Status, Code: r.Code, Reason: r.Reason}
	switch {
	case said.Meaning() == refusal.TooLong:
		asked, most := said.Tokens()
		return &thinker.TooLongError{Asked: asked, Limit: most, Err: e.server.Faultf("the prompt is longer than the context of the model %s (%s); "+
			"give it a longer one (Ollama num_ctx, llama.cpp --ctx-size), or set a smaller memory", e.o.Model, e.server.StatusText(r.Refusal))}
	case r.Status == http.StatusNotFound,
		r.Status == http.StatusBadRequest && strings.Contains(reason, "model") &&
			(strings.Contains(reason, "not found") || strings.Contains(reason, "does not exist")):
		return e.notFound(ctx, &r.Refusal)
	case r.Status == http.StatusServiceUnavailable && r.After == "" && strings.Contains(reason, "loading"):
		return e.server.Faultf("the model %s is still being loaded; try again in a moment", e.o.Model)
	}
	f := e.server.Refused("", r.Refusal)
	if f.Unanswerable() {
		f.Kind = nil
	}
	return f
}
