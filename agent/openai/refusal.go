package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"perch/agent"
)

// refusal is what a server says instead of an answer.
type refusal struct {
	status int
	said   string // one sentence of the server's; it may hold a key
	after  string // Retry-After
	to     string // Location
	midway bool   // something had been said by then
}

func (r *refusal) Error() string { return fmt.Sprintf("HTTP %d", r.status) }

// pause is the moment for which a server asks before it is tried again. A date,
// which few send, is not worth reading: it is further away than a turn waits.
func (r *refusal) pause() (time.Duration, bool) {
	if r.status != http.StatusTooManyRequests && r.status != http.StatusServiceUnavailable {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(r.after, 64)
	if err != nil || !(seconds >= 0 && seconds <= longestPause.Seconds()) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// refused reads what comes with an HTTP status that is no success.
func refused(response *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(response.Body, mostRefused))
	if err != nil && len(data) == 0 {
		data = nil // the status tells enough
	}
	return &refusal{status: response.StatusCode, said: sentence(data),
		after: response.Header.Get("Retry-After"), to: response.Header.Get("Location")}
}

// sentence finds what a server says went wrong, in any of the places where
// servers put it.
func sentence(data []byte) string {
	var e struct {
		Error, Message, Detail json.RawMessage
	}
	text := string(data)
	if json.Unmarshal(data, &e) == nil {
		text = ""
		for _, raw := range []json.RawMessage{e.Error, e.Message, e.Detail} {
			var inner struct{ Message string }
			switch {
			case !there(raw):
			case json.Unmarshal(raw, &text) == nil:
			case json.Unmarshal(raw, &inner) == nil && inner.Message != "":
				text = inner.Message
			default:
				text = string(raw)
			}
			if text != "" {
				break
			}
		}
	}
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		return "" // a proxy's page
	}
	return text
}

// quote is a server's text for a sentence of ours.
func (e *Engine) quote(text string) string { return agent.Quote(text, e.o.Key) }

// because joins what a server said to a sentence.
func (e *Engine) because(what, said string) string { return agent.Because(what, said, e.o.Key) }

// explain makes one sentence of an error, with its cause and its cure.
func (e *Engine) explain(ctx context.Context, err error) error {
	var out outError
	var r *refusal
	switch {
	case errors.As(err, &out):
		return out.error
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &r):
		return e.refusal(ctx, r)
	}
	return e.broken(err)
}

func (e *Engine) refusal(ctx context.Context, r *refusal) error {
	said := strings.ToLower(r.said)
	switch {
	case r.status == http.StatusUnauthorized || r.status == http.StatusForbidden:
		if e.o.Key == "" {
			return agent.Away("%s wants a key and none is set (brains[..].key)", agent.Address(e.base))
		}
		if r.status == http.StatusForbidden {
			return agent.Away("%s", e.because("the key is refused (brains[..].key)", r.said))
		}
		return agent.Away("the key is refused (brains[..].key)")
	case r.status == http.StatusNotFound,
		r.status == http.StatusBadRequest && strings.Contains(said, "model") && (strings.Contains(said, "not found") || strings.Contains(said, "does not exist")):
		return e.notFound(ctx, r)
	case r.status == http.StatusPaymentRequired:
		return agent.Away("%s", e.because("the account has no credit left", r.said))
	case r.status == http.StatusTooManyRequests:
		if r.after != "" {
			return agent.Away("%s has had too many requests; it asks to wait until %s (Retry-After)", agent.Address(e.base), agent.RetryAfter(r.after, e.o.Key))
		}
		return agent.Away("%s", e.because("it has had too many requests", r.said))
	case r.status == http.StatusServiceUnavailable && strings.Contains(said, "loading"):
		return agent.Away("the model %s is still being loaded; try again in a moment", e.o.Model)
	case r.status >= 300 && r.status < 400:
		return agent.Away("%s sends elsewhere (HTTP %d to %s); put the right address into url", agent.Address(e.base), r.status, agent.Redirected(r.to, e.o.Key))
	case r.status >= 500 || r.status == http.StatusRequestTimeout || r.status == http.StatusTooEarly:
		return agent.Away("%s", e.because(fmt.Sprintf("%s has failed (HTTP %d)", agent.Address(e.base), r.status), r.said))
	}
	return errors.New(e.because(fmt.Sprintf("the server refuses the request (HTTP %d)", r.status), r.said))
}

// broken is a connection that was not made, or not kept, or that carried what
// is no answer.
func (e *Engine) broken(err error) error {
	where := agent.Address(e.base)
	switch {
	case errors.Is(err, errSlow):
		return agent.Away("%s: %s", where, strings.TrimPrefix(err.Error(), errSlow.Error()+": "))
	case errors.Is(err, errGarbage):
		return agent.Away("%s: %s; is it the base address, with its /v1?", where, err)
	case errors.Is(err, errTooLong), errors.Is(err, errTooMuch):
		return agent.Away("%s: %s", where, err)
	}
	return agent.Unreachable(where, err, e.o.Key)
}
