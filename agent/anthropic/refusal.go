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

// statusOverloaded is a status code of the Messages API: the server has too many requests.
const statusOverloaded = 529

// statusOfKind maps the type of an error to its status code. It is needed for an error within a
// stream, because the response of a stream has the status 200.
var statusOfKind = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
	"timeout_error": 504, "overloaded_error": statusOverloaded,
}

// refusalOf returns the API's error and its type from an error of the SDK. ok is false for any
// other error.
func refusalOf(err error) (r remote.Refusal, kind string, ok bool) {
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
		r.Status = cmp.Or(statusOfKind[kind], http.StatusBadGateway)
	}
	if e.Response != nil {
		r.After = e.Response.Header.Get("Retry-After")
	}
	return r, kind, true
}

// explain returns the error of ctx if ctx has ended, and otherwise an error for the owner: one
// sentence with the cause and the remedy.
func (e *Engine) explain(ctx context.Context, err error) error {
	var fault *remote.Fault
	var elsewhere *redirected
	var syntax *json.SyntaxError
	r, kind, ok := refusalOf(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case ok:
		return e.explainRefusal(ctx, r, kind)
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &elsewhere):
		return e.server.Refused("", remote.Refusal{Status: elsewhere.status, To: elsewhere.to})
	case errors.Is(err, errNotMessages), errors.As(err, &syntax):
		return e.server.Fault(errNotMessages.Error() + "; is it the right address?")
	case errors.Is(err, errTooLarge):
		return e.server.Fault(errTooLarge.Error() + "; is it the right address?")
	}
	return e.server.Unreachable(err, errors.Is(err, io.ErrUnexpectedEOF))
}

// explainRefusal explains an error that the API has returned. The result does not wrap
// agent.ErrAway if the API has refused the content of the request, because another server
// would probably refuse it as well.
func (e *Engine) explainRefusal(ctx context.Context, r remote.Refusal, kind string) error {
	switch {
	case strings.Contains(r.Reason, "credit balance"):
		r.Status = http.StatusPaymentRequired
	case r.Status == http.StatusNotFound:
		return e.explainNotFound(ctx, r, kind)
	case r.Status == statusOverloaded:
		return e.server.Fault("is overloaded; try again in a moment")
	}
	f := e.server.Refused(kind, r)
	if f.Unanswerable() {
		f.Kind = nil
	}
	return f
}
