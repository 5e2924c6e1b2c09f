package hass

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"perch/limit"
	"perch/remote"
)

// Call sends a request to the REST API and decodes the JSON response into result, which may be
// nil. The path is relative to the URL, such as "api/conversation/process". body is sent as JSON
// unless it is nil. within bounds the whole call. The error is a *Fault, or ctx.Err() if ctx has
// ended.
func (c *Client) Call(ctx context.Context, within time.Duration, method, path string, body, result any) error {
	data, err := c.web.Fetch(ctx, remote.Request{Method: method, Path: path, JSON: body, Within: within}, limit.File)
	var fault *Fault
	switch {
	case errors.As(err, &fault) && fault.Code == remote.CodeSilent:
		return c.TimeoutFault(within)
	case errors.As(err, &fault) && fault.Code == remote.CodeClosed:
		return c.closed()
	case errors.As(err, &fault) && fault.Status > 0:
		return c.StatusFault(fault.Refusal)
	case err != nil || result == nil:
		return err
	}
	if err := json.Unmarshal(data, result); err != nil {
		return c.fault(remote.CodeOdd, "answers with something that is not part of its API; check the url")
	}
	return nil
}
