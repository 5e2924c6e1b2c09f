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

// Bounds of HTTP.
const (
	streamWithin = 3 * time.Second // for the server's event stream to begin
	mostRequests = 48              // concurrent
	mostLines    = 1000            // of a stream that are read per second; more wait in the network
)

// transport returns the HTTP transport, which lives no longer than ctx.
func (s *Server) transport(ctx context.Context, w way) (sdk.Transport, *http.Client) {
	g := &guard{ctx: ctx, way: w, key: s.o.Key, slots: make(chan struct{}, mostRequests), base: remote.NewTransport()}
	client := remote.NewHTTP(g)
	if w.sse {
		return &sdk.SSEClientTransport{Endpoint: w.url.String(), HTTPClient: client, MaxEventSize: limit.Message}, client
	}
	return &sdk.StreamableClientTransport{Endpoint: w.url.String(), HTTPClient: client, MaxEventSize: limit.Message}, client
}

// guard is an http.RoundTripper that adds the key and prevents sending it elsewhere,
// cancels requests when the connection ends, bounds responses, and converts responses
// that are not answers to explainable errors.
type guard struct {
	ctx   context.Context // the connection's
	way   way
	key   string
	slots chan struct{}
	base  *http.Transport
}

// CloseIdleConnections is called by http.Client.
func (g *guard) CloseIdleConnections() { g.base.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	home := g.way.url
	if r.URL.Scheme != home.Scheme || r.URL.Host != home.Host {
		return nil, refuse(r, errElsewhere) // an older server names the address for messages
	}
	select {
	case g.slots <- struct{}{}:
	default:
		return nil, refuse(r, errBusy)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(g.ctx, func() { cancel(context.Cause(g.ctx)) })
	release := sync.OnceFunc(func() { stop(); cancel(nil); <-g.slots })
	response, err := g.send(ctx, cancel, r)
	if err != nil {
		release()
		return nil, err
	}
	b := &body{Body: remote.Body{ReadCloser: response.Body, Left: limit.Message, Full: errTooLong}, release: release}
	if kind(response) == "text/event-stream" {
		b.Left, b.pace, b.over = -1, limit.PerSecond(mostLines), ctx.Done() // it has no total limit; the SDK bounds its events
	}
	response.Body = b
	if err := g.judge(r, response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

func refuse(r *http.Request, err error) error {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return err
}

// send sends the request. A server's event stream that does not begin in time is
// treated as unsupported, because the SDK waits for it.
func (g *guard) send(ctx context.Context, cancel context.CancelCauseFunc, r *http.Request) (*http.Response, error) {
	out := r.Clone(ctx)
	if g.key != "" {
		out.Header.Set("Authorization", "Bearer "+g.key)
	}
	if r.Method != http.MethodGet || g.way.sse {
		return g.cause(ctx, out)
	}
	late := time.AfterFunc(streamWithin, func() { cancel(errSlow) })
	response, err := g.cause(ctx, out)
	if late.Stop() || !errors.Is(context.Cause(ctx), errSlow) {
		return response, err
	}
	if response != nil {
		_ = response.Body.Close()
	}
	return &http.Response{Status: "405 Method Not Allowed", StatusCode: http.StatusMethodNotAllowed, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// cause sends the request, and returns the reason if the connection's end cancelled it.
func (g *guard) cause(ctx context.Context, out *http.Request) (*http.Response, error) {
	response, err := g.base.RoundTrip(out)
	if err != nil && g.ctx.Err() != nil {
		err = context.Cause(g.ctx) // ctx ends slightly later, and may have no cause yet
	}
	return response, err
}

// judge returns an error for a response that is not an answer. The server's event
// stream is left to the SDK, because it is optional.
func (g *guard) judge(r *http.Request, response *http.Response) error {
	if r.Method == http.MethodDelete || r.Method == http.MethodGet && !g.way.sse {
		return nil
	}
	if response.StatusCode >= 300 {
		data, err := io.ReadAll(io.LimitReader(response.Body, limit.Body))
		if err == nil && kind(response) == "application/json" && spoken(data) {
			replaceBody(response, data)
			return nil
		}
		_, reason := remote.Message(data)
		return &refusal{session: r.Header.Get("Mcp-Session-Id") != "", Refusal: remote.Refusal{Status: response.StatusCode, Reason: reason,
			After: response.Header.Get("Retry-After"), To: response.Header.Get("Location")}}
	}
	if r.Method == http.MethodGet {
		if kind(response) != "text/event-stream" {
			return errNoMCP
		}
		return nil
	}
	if g.way.sse || !asks(r) {
		return nil // no answer, or over another stream
	}
	switch kind(response) {
	case "text/event-stream":
		return nil
	case "application/json":
		data, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		if !spoken(data) {
			return errNoMCP
		}
		replaceBody(response, data)
		return nil
	}
	return errNoMCP
}

// replaceBody replaces the body of a response by data already read.
func replaceBody(response *http.Response, data []byte) {
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(data))
}

// asks reports whether a request expects an answer.
func asks(r *http.Request) bool {
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

// spoken reports whether data is JSON-RPC.
func spoken(data []byte) bool {
	var head struct {
		Version string `json:"jsonrpc"`
	}
	return json.Unmarshal(data, &head) == nil && head.Version == "2.0"
}

func kind(response *http.Response) string {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return strings.ToLower(kind)
}

// body is a bounded response body.
type body struct {
	remote.Body
	release func()
	pace    limit.Pace      // limits lines; zero unless it is a stream
	over    <-chan struct{} // closed when the request ends
}

// Read implements io.Reader. Lines are limited because even empty ones are costly. After
// a second without lines, a second's worth may arrive at once.
func (b *body) Read(p []byte) (int, error) {
	b.pace.Wait(b.over) // also ends the read
	n, err := b.Body.Read(p)
	b.pace.Took(bytes.Count(p[:n], []byte{'\n'}))
	return n, err
}

func (b *body) Close() error {
	err := b.Body.Close()
	b.release()
	return err
}
