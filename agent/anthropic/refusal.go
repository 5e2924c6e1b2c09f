package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"perch/agent"
)

// refusal is what the API says instead of an answer.
type refusal struct {
	status int
	kind   string // of the error, as the API names it
	said   string // one sentence of the server's; it may hold a key
	after  string // Retry-After
}

// kinds are the statuses that errors stand for which come within a stream,
// after its status has been sent.
var kinds = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
	"timeout_error": 504, "overloaded_error": 529,
}

// refused finds the API's own error in one of the SDK's.
func refused(err error) (refusal, bool) {
	var e *sdk.Error
	if !errors.As(err, &e) {
		return refusal{}, false
	}
	r := refusal{status: e.StatusCode, kind: string(e.Type())}
	var body struct {
		Error struct{ Type, Message string }
	}
	if json.Unmarshal([]byte(e.RawJSON()), &body) == nil {
		r.said, r.kind = body.Error.Message, cmp.Or(body.Error.Type, r.kind)
	}
	if r.status < 400 {
		if r.status = kinds[r.kind]; r.status == 0 {
			r.status = http.StatusBadGateway
		}
	}
	if e.Response != nil {
		r.after = e.Response.Header.Get("Retry-After")
	}
	return r, true
}

// quote is a server's text for a sentence of ours.
func (e *Engine) quote(text string) string { return agent.Quote(text, e.o.Key) }

// because joins what a server said to a sentence.
func (e *Engine) because(what, said string) string { return agent.Because(what, said, e.o.Key) }

// explain makes one sentence of an error, with its cause and its cure.
func (e *Engine) explain(ctx context.Context, err error) error {
	var out outError
	switch {
	case errors.As(err, &out):
		return out.error
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if r, ok := refused(err); ok {
		return e.refusal(ctx, r)
	}
	return e.broken(err)
}

func (e *Engine) refusal(ctx context.Context, r refusal) error {
	switch {
	case r.status == http.StatusUnauthorized && e.o.Key == "":
		return agent.Away("%s wants a key and none is set (brains[..].key)", agent.Address(e.base))
	case r.status == http.StatusUnauthorized:
		return agent.Away("the key is refused (brains[..].key)")
	case r.status == http.StatusForbidden:
		return agent.Away("%s", e.because("the key is refused (brains[..].key)", r.said))
	case r.status == http.StatusPaymentRequired, strings.Contains(r.said, "credit balance"):
		return agent.Away("%s", e.because("the account has no credit left", r.said))
	case r.status == http.StatusNotFound:
		return e.notFound(ctx, r)
	case r.status == http.StatusTooManyRequests && r.after != "":
		return agent.Away("%s has had too many requests; it asks to wait until %s (Retry-After)", agent.Address(e.base), agent.RetryAfter(r.after, e.o.Key))
	case r.status == http.StatusTooManyRequests:
		return agent.Away("%s", e.because("it has had too many requests", r.said))
	case r.status == 529:
		return agent.Away("%s is overloaded; try again in a moment", agent.Address(e.base))
	case r.status >= 500 || r.status == http.StatusRequestTimeout:
		return agent.Away("%s", e.because(fmt.Sprintf("%s has failed (HTTP %d)", agent.Address(e.base), r.status), r.said))
	}
	return errors.New(e.because(fmt.Sprintf("the server refuses the request (HTTP %d)", r.status), r.said))
}

// broken is a connection that was not made, or not kept, or that carried what
// is no answer.
func (e *Engine) broken(err error) error {
	var elsewhere *moved
	var syntax *json.SyntaxError
	where := agent.Address(e.base)
	switch {
	case errors.Is(err, errSlow):
		return agent.Away("%s: %s", where, strings.TrimPrefix(err.Error(), errSlow.Error()+": "))
	case errors.As(err, &elsewhere):
		return agent.Away("%s sends elsewhere (to %s); put the right address into url", where, agent.Redirected(elsewhere.to, e.o.Key))
	case errors.Is(err, errGarbage), errors.As(err, &syntax):
		return agent.Away("%s: %s; is it the right address?", where, errGarbage)
	case errors.Is(err, errTooMuch):
		return agent.Away("%s: %s", where, err)
	}
	return agent.Unreachable(where, err, e.o.Key)
}
