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
	streamWithin = 3 * time.Second // for a stream of the server's own to begin
	mostRequests = 48              // at a time
	mostLines    = 1000            // of a stream, that are read in a second; more wait in the network
)

// transport is the one over HTTP, which lives no longer than ctx.
func (s *Server) transport(ctx context.Context, w way) (sdk.Transport, *http.Client) {
	g := &guard{ctx: ctx, way: w, key: s.o.Key, slots: make(chan struct{}, mostRequests), base: remote.NewTransport()}
	client := remote.NewHTTP(g)
	if w.sse {
		return &sdk.SSEClientTransport{Endpoint: w.url.String(), HTTPClient: client, MaxEventSize: limit.Message}, client
	}
	return &sdk.StreamableClientTransport{Endpoint: w.url.String(), HTTPClient: client, MaxEventSize: limit.Message}, client
}

// guard stands between the SDK and the network. It adds the key, and sees that
// it goes nowhere else; ends what outlives the connection; bounds what comes
// back; and makes an explainable error of anything that is not an answer.
type guard struct {
	ctx   context.Context // the connection's
	way   way
	key   string
	slots chan struct{}
	base  *http.Transport
}

// CloseIdleConnections is what http.Client looks for.
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
		b.Left, b.pace, b.over = -1, limit.PerSecond(mostLines), ctx.Done() // it may go on for ever; the SDK bounds its events
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

// send makes the request. A stream of the server's own that does not begin in
// time is treated as missing, because the SDK waits for it.
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

// cause makes the request, and says why it was ended where the connection was.
func (g *guard) cause(ctx context.Context, out *http.Request) (*http.Response, error) {
	response, err := g.base.RoundTrip(out)
	if err != nil && g.ctx.Err() != nil {
		err = context.Cause(g.ctx) // ctx ends a moment after it, and may have no cause yet
	}
	return response, err
}

// judge finds what is no answer. The stream of the server's own is the SDK's to
// judge: it is one that a server need not have.
func (g *guard) judge(r *http.Request, response *http.Response) error {
	if r.Method == http.MethodDelete || r.Method == http.MethodGet && !g.way.sse {
		return nil
	}
	if response.StatusCode >= 300 {
		data, err := io.ReadAll(io.LimitReader(response.Body, limit.Body))
		if err == nil && kind(response) == "application/json" && spoken(data) {
			put(response, data)
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
		return nil // the answer comes elsewhere, or not at all
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
		put(response, data)
		return nil
	}
	return errNoMCP
}

// put gives a body that has been read anew.
func put(response *http.Response, data []byte) {
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(data))
}

// asks reports whether a request wants an answer.
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

// spoken reports whether a text is of JSON-RPC.
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

// body is what comes back.
type body struct {
	remote.Body
	release func()
	pace    limit.Pace      // of lines; zero where it is no stream
	over    <-chan struct{} // of the request
}

// Read implements io.Reader. A line costs as much to read without anything in it, so
// lines are counted. As many as come in a second may come at once after a second of none.
func (b *body) Read(p []byte) (int, error) {
	b.pace.Wait(b.over) // whose end is the read's, too
	n, err := b.Body.Read(p)
	b.pace.Took(bytes.Count(p[:n], []byte{'\n'}))
	return n, err
}

func (b *body) Close() error {
	err := b.Body.Close()
	b.release()
	return err
}
