package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"perch/remote"
)

// statusOverloaded is a status code specific to this API.
const statusOverloaded = 529

// kinds maps the errors within a stream, after its status was sent, to status codes.
var kinds = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
	"timeout_error": 504, "overloaded_error": statusOverloaded,
}

// refused returns the API's error in an error of the SDK, with its type.
func refused(err error) (r remote.Refusal, kind string, ok bool) {
	var e *sdk.Error
	if !errors.As(err, &e) {
		return r, "", false
	}
	r.Status, kind = e.StatusCode, string(e.Type())
	var body struct {
		Error struct{ Type, Message string }
	}
	if json.Unmarshal([]byte(e.RawJSON()), &body) == nil {
		r.Reason, kind = body.Error.Message, cmp.Or(body.Error.Type, kind)
	}
	if r.Status < 400 {
		r.Status = cmp.Or(kinds[kind], http.StatusBadGateway)
	}
	if e.Response != nil {
		r.After = e.Response.Header.Get("Retry-After")
	}
	return r, kind, true
}

// explain returns a one-sentence error with cause and cure.
func (e *Engine) explain(ctx context.Context, err error) error {
	var fault *remote.Fault
	var elsewhere *redirected
	var syntax *json.SyntaxError
	r, kind, ok := refused(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case ok:
		return e.refusal(ctx, r, kind)
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &elsewhere):
		return e.server.Refused("", remote.Refusal{Status: elsewhere.status, To: elsewhere.to})
	case errors.Is(err, errGarbage), errors.As(err, &syntax):
		return e.server.Fault(errGarbage.Error() + "; is it the right address?")
	case errors.Is(err, errTooMuch):
		return e.server.Fault(errTooMuch.Error() + "; is it the right address?")
	}
	return e.server.Unreachable(err, errors.Is(err, io.ErrUnexpectedEOF))
}

// refusal explains errors that are specific to the Messages API.
func (e *Engine) refusal(ctx context.Context, r remote.Refusal, kind string) error {
	switch {
	case strings.Contains(r.Reason, "credit balance"):
		r.Status = http.StatusPaymentRequired
	case r.Status == http.StatusNotFound:
		return e.notFound(ctx, r, kind)
	case r.Status == statusOverloaded:
		return e.server.Fault("is overloaded; try again in a moment")
	}
	f := e.server.Refused(kind, r)
	if f.Unanswerable() {
		f.Kind = nil
	}
	return f
}
