package hass

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// mostAnswer bounds the answer of a REST call, in bytes.
const mostAnswer = 1 << 20

// Call sends a request of the REST API and decodes its JSON into answer, which
// may be nil. The path is below the URL, "api/conversation/process"; body is
// sent as JSON, nothing where nil. All of it has that long. The error is a
// *Fault, or ctx's where that has ended.
func (c *Client) Call(ctx context.Context, within time.Duration, method, path string, body, answer any) error {
	inner, cancel := context.WithTimeoutCause(ctx, within, c.Silent(within))
	defer cancel()
	inner, stop := context.WithCancelCause(inner)
	defer stop(nil)
	defer context.AfterFunc(c.life, func() { stop(c.closed()) })()
	data, err := c.fetch(inner, method, path, body)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case inner.Err() != nil:
		return context.Cause(inner)
	default:
		return err
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return c.fault(CodeOdd, "answers with something that is not of its API; check the url")
	}
	return nil
}

func (c *Client) fetch(ctx context.Context, method, path string, body any) ([]byte, error) {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("ask Home Assistant: %w", err)
		}
		sent = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base.JoinPath(path).String(), sent)
	if err != nil {
		return nil, fmt.Errorf("ask Home Assistant: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+c.o.Token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreached(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read, or is of no use
	if response.StatusCode/100 != 2 {
		// The status tells enough where this cannot be read.
		text, _ := io.ReadAll(io.LimitReader(response.Body, 2048))
		return nil, c.Status(response.StatusCode, "/"+strings.Trim(path, "/"), string(text))
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	if err != nil {
		return nil, c.fault(CodeLost, "broke off in the middle of its answer; see its log")
	}
	if len(data) > mostAnswer {
		return nil, c.fault(CodeOdd, "answers with more than there can be to say; check the url")
	}
	return data, nil
}

// message takes the words out of an error's body: {"message": "..."}, or plain
// text. Of a page nothing is taken.
func message(body string) string {
	var e struct{ Message string }
	switch body = strings.TrimSpace(body); {
	case strings.HasPrefix(body, "<"):
		return ""
	case strings.HasPrefix(body, "{"):
		_ = json.Unmarshal([]byte(body), &e) // what is no JSON says nothing
		return e.Message
	}
	// "401: Unauthorized" is aiohttp's own text, and tells nothing new.
	if len(body) > 5 && body[3] == ':' {
		return strings.TrimSpace(body[4:])
	}
	return body
}
