package anthropic

import (
	"context"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"perch/agent"
	"perch/agent/thinker"
	"perch/limit"
	"perch/remote"
)

// checkTimeout is the maximum duration of a request about models.
const checkTimeout = 5 * time.Second

// Check requests the description of the model, which costs nothing, and returns an error if
// the model cannot be used. A proxy that does not support this request passes the check.
func (e *Engine) Check(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	_, err := e.models.Get(within, e.o.Model, sdk.ModelGetParams{})
	if err == nil {
		return nil
	}
	r, kind, ok := refusalOf(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case ok && (r.Status == 404 || r.Status == 405) && kind != "not_found_error" && remote.Address(e.base) != Home:
		return nil
	case ok:
		return e.explain(ctx, err)
	case within.Err() != nil:
		return e.server.Fault("does not answer within " + checkTimeout.String() + "; is this machine online?")
	case strings.HasPrefix(err.Error(), "error parsing response json"), strings.HasPrefix(err.Error(), "expected destination type"):
		err = errNotMessages
	}
	return e.explain(ctx, err)
}

// Warm opens a connection for the next message by calling Check.
func (e *Engine) Warm(ctx context.Context) error { return e.Check(ctx) }

// explainNotFound returns the error for a response of status 404. If the model does not exist,
// the error names up to limit.Named models that the server lists.
func (e *Engine) explainNotFound(ctx context.Context, r remote.Refusal, kind string) error {
	if kind != "not_found_error" {
		return e.server.Faultf("there is no Messages API at %s (%s); is it the base address?", remote.Address(e.base), e.server.StatusText(r))
	}
	within, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	page, err := e.models.List(within, sdk.ModelListParams{})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil || page == nil || len(page.Data) == 0 {
		return e.server.Faultf("the model %s does not exist (%s); check model", e.o.Model, e.server.StatusText(r))
	}
	var names []string
	for _, m := range page.Data[:min(len(page.Data), limit.Named)] {
		names = append(names, e.server.Quote(m.ID))
	}
	return e.server.Faultf("the model %s does not exist; GET %s/v1/models lists: %s", e.o.Model, remote.Address(e.base), strings.Join(names, ", "))
}

// maxPictureBytes is the maximum size of a picture. The API accepts 5 MB of base64.
const maxPictureBytes = 3 << 20

// DescribeImage implements agent.Seer. It returns agent.ErrBlind unless Options.Vision is set.
func (e *Engine) DescribeImage(ctx context.Context, l agent.Look) (string, error) {
	if !e.o.Vision {
		return "", agent.ErrBlind
	}
	return thinker.DescribeImage(ctx, l, maxPictureBytes, e.Continue)
}
