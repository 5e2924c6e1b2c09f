package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Revisions of the protocol to connect with. The older one is tried first, because only a
// connection with it begins with the request "initialize", and some servers exit if their
// first request is another.
const (
	usualRevision  = "2025-11-25"
	latestRevision = "2026-07-28"
)

// link is a connection to a server.
type link struct {
	ctx     context.Context         // ends with the connection; its cause is the reason for the end
	end     context.CancelCauseFunc // ends ctx
	session *sdk.ClientSession
	child   *child        // nil over HTTP
	client  *http.Client  // nil for a child
	stale   chan struct{} // receives a value when the list of tools has changed
	ended   chan struct{} // closed when the connection has ended and recordEnd has stored that
}

// err returns the reason why the connection has ended, or nil.
func (l *link) err() error { return context.Cause(l.ctx) }

// endpoint describes how to connect to a server.
type endpoint struct {
	version string   // revision of the protocol
	url     *url.URL // nil for a child
	sse     bool     // use SSE, the predecessor of streamable HTTP
}

// connect connects to the first endpoint that works, and lists the tools.
func (s *Server) connect() (*link, error) {
	deadline := time.Now().Add(s.o.ConnectWithin)
	e := endpoint{version: usualRevision, url: s.url}
	l, err := s.attempt(e, deadline)
	if err != nil && isRefusedRevision(err) {
		e.version = latestRevision
		l, err = s.attempt(e, deadline)
	}
	for _, u := range s.sseAddresses(err) {
		e.version, e.sse, e.url = usualRevision, true, u
		var sseErr error
		if l, sseErr = s.attempt(e, deadline); sseErr == nil {
			return l, nil
		}
		if len(s.sseAddresses(sseErr)) == 0 && !errors.Is(sseErr, errNoMCP) {
			err = sseErr // not the error of a missing path or of a web page, so it explains more than the first error
		}
	}
	if err != nil {
		return nil, s.explain(err)
	}
	return l, nil
}

// isRefusedRevision reports whether a server refuses the revision usualRevision as too old.
func isRefusedRevision(err error) bool {
	refused := errorResponse(err)
	return refused != nil && (refused.Code == jsonrpc.CodeMethodNotFound || refused.Code == sdk.CodeUnsupportedProtocolVersion)
}

// sseAddresses returns the URLs to try SSE at if err, the error of an attempt, says that the
// server has no streamable HTTP at its URL; otherwise nil. Older versions of Home Assistant
// have SSE at another path.
func (s *Server) sseAddresses(err error) (addresses []*url.URL) {
	var refused *refusal
	if !errors.As(err, &refused) || s.url == nil {
		return nil
	}
	switch refused.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusGone, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
	default:
		return nil
	}
	addresses = append(addresses, s.url)
	if base, ok := strings.CutSuffix(s.url.Path, "/api/mcp"); ok {
		u := *s.url
		u.Path, u.RawPath = base+"/mcp_server/sse", ""
		addresses = append(addresses, &u)
	}
	return addresses
}

// attempt connects to e and lists the tools. After a failure it waits until the connection has
// been closed and a child has exited.
func (s *Server) attempt(e endpoint, deadline time.Time) (*link, error) {
	l := &link{stale: make(chan struct{}, 1), ended: make(chan struct{})}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	timeout := time.AfterFunc(time.Until(deadline), func() { l.end(errSlow) })
	stopWatch := context.AfterFunc(s.ctx, func() { l.end(errClosed) })
	client := sdk.NewClient(&sdk.Implementation{Name: "perch", Title: "Perch", Version: "1"}, &sdk.ClientOptions{
		// The server is offered no roots, no sampling, and no questions to the user.
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case l.stale <- struct{}{}:
			default:
			}
		},
	})
	client.AddReceivingMiddleware(refuseRequests)
	err := s.openSession(l, client, e)
	if !timeout.Stop() && err == nil {
		err = errSlow
	}
	stopWatch()
	if err == nil {
		return l, nil
	}
	if cause := l.err(); cause != nil {
		err = cause
	}
	l.end(err)
	if l.session != nil {
		_ = l.session.Wait()
	}
	if exitErr := l.waitTransport(); exitErr != nil && !errors.Is(err, errSlow) && !errors.Is(err, errClosed) {
		err = exitErr
	}
	return nil, err
}

// refuseRequests is a middleware that refuses a server's requests for features that this
// client does not offer.
func refuseRequests(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		switch method {
		case "roots/list", "sampling/createMessage", "elicitation/create":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " is not offered here"}
		}
		return next(ctx, method, r)
	}
}

// openSession sets the session of l, which it opens with client, and lists the tools.
func (s *Server) openSession(l *link, client *sdk.Client, e endpoint) (err error) {
	var transport sdk.Transport
	if e.url == nil {
		l.child = newChild(s)
		transport = l.child
	} else {
		transport, l.client = s.newTransport(l.ctx, e)
	}
	l.session, err = client.Connect(l.ctx, closingTransport{transport}, &sdk.ClientSessionOptions{ProtocolVersion: e.version})
	if err != nil {
		return err
	}
	tools, err := s.listTools(l.ctx, l.session)
	if err != nil {
		return err
	}
	s.setTools(tools)
	return nil
}

// waitTransport closes the idle HTTP connections of l, or waits until its child has exited.
// It returns the error of child.waitExit.
func (l *link) waitTransport() error {
	if l.client != nil {
		l.client.CloseIdleConnections()
	}
	if l.child == nil {
		return nil
	}
	return l.child.waitExit()
}

// closingTransport closes its connections when the context of Connect ends. Otherwise the
// SDK would repeat HTTP requests for half a minute.
type closingTransport struct{ sdk.Transport }

// Connect implements sdk.Transport.
func (t closingTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
	return conn, err
}

// watch waits for the end of a connection, or ends it on Close, and cleans up.
func (s *Server) watch(l *link) {
	done := make(chan struct{})
	s.wg.Go(func() {
		err := l.session.Wait()
		if exitErr := l.waitTransport(); exitErr != nil {
			err = exitErr
		} else if err == nil {
			err = errCut
		}
		l.end(s.explain(err))
		close(done)
	})
	s.wg.Go(func() { s.refresh(l) })
	select {
	case <-l.ctx.Done():
	case <-s.ctx.Done():
		// ClientSession.Close sends an HTTP server a request that ends the session, and stops a child.
		s.wg.Go(func() { _ = l.session.Close() })
		select {
		case <-done:
		case <-time.After(closeTimeout):
		}
		l.end(errClosed)
	}
	<-done
}

// refresh lists the tools again when the server reports a change, at most once a second,
// until the connection ends.
func (s *Server) refresh(l *link) {
	for {
		select {
		case <-l.stale:
		case <-l.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeoutCause(l.ctx, s.o.ConnectWithin, errSlow)
		tools, err := s.listTools(ctx, l.session)
		cancel()
		switch {
		case err == nil:
			s.setTools(tools)
		case l.ctx.Err() == nil:
			s.o.Log.Debug("cannot list the changed tools of an MCP server", "server", s.o.Name, "err", s.explain(err))
		}
		if s.o.Pause(l.ctx, time.Second) != nil {
			return
		}
	}
}
