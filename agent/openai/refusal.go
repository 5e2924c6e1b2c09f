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

// refused returns the *remote.Fault in err if the server has refused the request, or else nil.
func refused(err error) *remote.Fault {
	if f, ok := errors.AsType[*remote.Fault](err); ok && f.Status > 0 {
		return f
	}
	return nil
}

// retryPause returns how long the server asks to wait before a retry. ok is false if the server
// does not ask to wait, or asks for more than limit.Moment. Dates, which few servers send, are
// ignored.
func retryPause(r *remote.Refusal) (pause time.Duration, ok bool) {
	if r.Status != http.StatusTooManyRequests && r.Status != http.StatusServiceUnavailable {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(r.After, 64)
	if err != nil || !(seconds >= 0 && seconds <= limit.Moment.Seconds()) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// explain returns the error of ctx if ctx has ended, and otherwise an error with a sentence that names the
// cause and the remedy.
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

// refusal returns the error for a refused request. It explains refusals that are specific to language models. The
// error does not wrap agent.ErrAway if the server has refused the content of the request, because the next server
// would probably refuse it as well.
func (e *Engine) refusal(ctx context.Context, r *remote.Fault) error {
	reason := strings.ToLower(r.Reason)
	parsed := refusal.Refusal{Status: r.Status, Code: r.Code, Reason: r.Reason}
	switch {
	case parsed.Meaning() == refusal.TooLong:
		promptTokens, maxTokens := parsed.Tokens()
		return &thinker.TooLongError{Asked: promptTokens, Limit: maxTokens, Err: e.server.Faultf("the prompt is longer than the context of the model %s (%s); "+
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
