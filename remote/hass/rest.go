package hass

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"perch/limit"
	"perch/remote"
)

// Call sends a request of the REST API and decodes its JSON into answer, which may be nil.
// The path is below the URL, such as "api/conversation/process"; body is sent as JSON unless
// nil. within bounds the whole call. The error is a *Fault, or ctx's if that has ended.
func (c *Client) Call(ctx context.Context, within time.Duration, method, path string, body, answer any) error {
	data, err := c.web.Fetch(ctx, remote.Request{Method: method, Path: path, JSON: body, Within: within}, limit.File)
	var fault *Fault
	switch {
	case errors.As(err, &fault) && fault.Code == remote.CodeSilent:
		return c.Silent(within)
	case errors.As(err, &fault) && fault.Code == remote.CodeClosed:
		return c.closed()
	case errors.As(err, &fault) && fault.Status > 0:
		return c.Status(fault.Refusal)
	case err != nil || answer == nil:
		return err
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return c.fault(remote.CodeOdd, "answers with something that is not of its API; check the url")
	}
	return nil
}
