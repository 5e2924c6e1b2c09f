package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"perch/limit"
	"perch/remote"
)

// Limits of HTTP.
const (
	streamTimeout     = 3 * time.Second // timeout of the response headers of the server's event stream
	maxRequests       = 48              // concurrent requests of a connection
	maxLinesPerSecond = 1000            // lines read of an event stream; more lines wait in the network
)

// newTransport returns an HTTP transport that fails once ctx has ended, and the HTTP client
// that it uses.
func (s *Server) newTransport(ctx context.Context, e endpoint) (sdk.Transport, *http.Client) {
	g := &guard{ctx: ctx, endpoint: e, key: s.o.Key, slots: make(chan struct{}, maxRequests), base: remote.NewTransport()}
	client := remote.NewHTTP(g)
	if e.sse {
		return &sdk.SSEClientTransport{Endpoint: e.url.String(), HTTPClient: client, MaxEventSize: limit.Message}, client
	}
	return &sdk.StreamableClientTransport{Endpoint: e.url.String(), HTTPClient: client, MaxEventSize: limit.Message}, client
}

// guard is an http.RoundTripper that adds the key to requests and refuses requests to
// other hosts, cancels requests when the connection ends, limits the length of responses,
// and returns an error for responses that are not JSON-RPC.
type guard struct {
	ctx      context.Context // ends with the connection
	endpoint endpoint
	key      string        // bearer token; "" means none
	slots    chan struct{} // holds one value per running request
	base     *http.Transport
}

// CloseIdleConnections closes idle TCP connections. http.Client.CloseIdleConnections
// calls it.
func (g *guard) CloseIdleConnections() { g.base.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	home := g.endpoint.url
	if r.URL.Scheme != home.Scheme || r.URL.Host != home.Host {
		return nil, refuse(r, errElsewhere) // an SSE server chooses the URL that messages are posted to
	}
	select {
	case g.slots <- struct{}{}:
	default:
		return nil, refuse(r, errBusy)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(g.ctx, func() { cancel(context.Cause(g.ctx)) })
	release := sync.OnceFunc(func() { stop(); cancel(nil); <-g.slots })
	response, err := g.sendRequest(ctx, cancel, r)
	if err != nil {
		release()
		return nil, err
	}
	b := &body{Body: remote.Body{ReadCloser: response.Body, Left: limit.Message, Full: errTooLong}, release: release}
	if contentType(response) == "text/event-stream" {
		// A stream may have any length, because the SDK limits the length of each event.
		b.Left, b.pace, b.done = -1, limit.PerSecond(maxLinesPerSecond), ctx.Done()
	}
	response.Body = b
	if err := g.checkResponse(r, response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// refuse closes the body of a request that is not sent, and returns err.
func refuse(r *http.Request, err error) error {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return err
}

// sendRequest sends a request with the key. If r asks for the server's event stream over
// streamable HTTP, and no response comes within streamTimeout, sendRequest cancels r and
// returns the response of a server without such a stream (405), because the SDK would wait
// without a limit.
func (g *guard) sendRequest(ctx context.Context, cancel context.CancelCauseFunc, r *http.Request) (*http.Response, error) {
	out := r.Clone(ctx)
	if g.key != "" {
		out.Header.Set("Authorization", "Bearer "+g.key)
	}
	if r.Method != http.MethodGet || g.endpoint.sse {
		return g.roundTrip(out)
	}
	timeout := time.AfterFunc(streamTimeout, func() { cancel(errSlow) })
	response, err := g.roundTrip(out)
	if timeout.Stop() || !errors.Is(context.Cause(ctx), errSlow) {
		return response, err
	}
	if response != nil {
		_ = response.Body.Close()
	}
	return &http.Response{Status: "405 Method Not Allowed", StatusCode: http.StatusMethodNotAllowed, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// roundTrip sends a request. If it fails because the connection has ended, roundTrip
// returns the reason for the end.
func (g *guard) roundTrip(r *http.Request) (*http.Response, error) {
	response, err := g.base.RoundTrip(r)
	if err != nil && g.ctx.Err() != nil {
		err = context.Cause(g.ctx) // the request's context ends slightly later, and may have no cause yet
	}
	return response, err
}

// checkResponse returns an error if the response to r is neither JSON-RPC nor an event
// stream. It ignores responses to requests for the event stream of streamable HTTP, which is
// optional, and to requests that end a session: the SDK handles both.
func (g *guard) checkResponse(r *http.Request, response *http.Response) error {
	if r.Method == http.MethodDelete || r.Method == http.MethodGet && !g.endpoint.sse {
		return nil
	}
	if response.StatusCode >= 300 {
		data, err := io.ReadAll(io.LimitReader(response.Body, limit.Body))
		if err == nil && contentType(response) == "application/json" && isJSONRPC(data) {
			setBody(response, data)
			return nil
		}
		_, reason := remote.Message(data)
		return &refusal{session: r.Header.Get("Mcp-Session-Id") != "", Refusal: remote.Refusal{Status: response.StatusCode, Reason: reason,
			After: response.Header.Get("Retry-After"), To: response.Header.Get("Location")}}
	}
	if r.Method == http.MethodGet {
		if contentType(response) != "text/event-stream" {
			return errNoMCP
		}
		return nil
	}
	if g.endpoint.sse || !expectsResponse(r) {
		return nil // there is no JSON-RPC response, or it arrives on the event stream
	}
	switch contentType(response) {
	case "text/event-stream":
		return nil
	case "application/json":
		data, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		if !isJSONRPC(data) {
			return errNoMCP
		}
		setBody(response, data)
		return nil
	}
	return errNoMCP
}

// setBody closes the body of a response and replaces it by data, which was read from it.
func setBody(response *http.Response, data []byte) {
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(data))
}

// expectsResponse reports whether the server must send a JSON-RPC response to the body of
// r: the body is a request, or cannot be examined. It is false for notifications and
// responses.
func expectsResponse(r *http.Request) bool {
	if r.GetBody == nil {
		return true
	}
	copied, err := r.GetBody()
	if err != nil {
		return true
	}
	defer func() { _ = copied.Close() }()
	var head struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	return json.NewDecoder(copied).Decode(&head) != nil || len(head.ID) > 0 && head.Method != ""
}

// isJSONRPC reports whether data is a JSON-RPC 2.0 message.
func isJSONRPC(data []byte) bool {
	var head struct {
		Version string `json:"jsonrpc"`
	}
	return json.Unmarshal(data, &head) == nil && head.Version == "2.0"
}

// contentType returns the media type of a response in lower case, or "".
func contentType(response *http.Response) string {
	mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return strings.ToLower(mediaType)
}

// body is the body of a response, with a limited length or a limited rate of lines.
type body struct {
	remote.Body
	release func()          // frees the slot of the request
	pace    limit.Pace      // limits the lines per second of an event stream; zero for other responses
	done    <-chan struct{} // closed when the request has ended; nil unless the response is an event stream
}

// Read reads from the body. It limits the lines per second, because the SDK spends time
// even on empty lines. After a second without lines, a second's worth may be read at once.
func (b *body) Read(p []byte) (int, error) {
	b.pace.Wait(b.done) // returns early if the request ends; the read then fails
	n, err := b.Body.Read(p)
	b.pace.Took(bytes.Count(p[:n], []byte{'\n'}))
	return n, err
}

// Close closes the body and frees the slot of the request.
func (b *body) Close() error {
	err := b.Body.Close()
	b.release()
	return err
}
