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

// The protocol revisions to open a connection with. The older one is tried first,
// because some servers exit if the first request is not "initialize".
const (
	usual  = "2025-11-25"
	latest = "2026-07-28"
)

// link is one connection.
type link struct {
	ctx     context.Context // ends with the connection; the cause is the reason
	lose    context.CancelCauseFunc
	session *sdk.ClientSession
	child   *child        // nil over HTTP
	client  *http.Client  // nil for a child
	stale   chan struct{} // the list of tools has changed
	ended   chan struct{} // closed when the connection has ended completely
}

func (l *link) why() error { return context.Cause(l.ctx) }

// way is a way to connect to a server.
type way struct {
	version string
	url     *url.URL // nil for a child
	sse     bool     // the transport from before streamable HTTP
}

// connect tries the ways to reach the server, and lists its tools.
func (s *Server) connect() (*link, error) {
	deadline := time.Now().Add(s.o.ConnectWithin)
	way := way{version: usual, url: s.url}
	l, err := s.attempt(way, deadline)
	if err != nil && tooOld(err) {
		way.version = latest
		l, err = s.attempt(way, deadline)
	}
	for _, u := range s.older(err) {
		way.version, way.sse, way.url = usual, true, u
		var other error
		if l, other = s.attempt(way, deadline); other == nil {
			return l, nil
		}
		if len(s.older(other)) == 0 && !errors.Is(other, errNoMCP) {
			err = other // a server answered, with a refusal
		}
	}
	if err != nil {
		return nil, s.explain(err)
	}
	return l, nil
}

// tooOld reports whether a server refuses the usual revision as too old.
func tooOld(err error) bool {
	refused := answerOf(err)
	return refused != nil && (refused.Code == jsonrpc.CodeMethodNotFound || refused.Code == sdk.CodeUnsupportedProtocolVersion)
}

// older returns the addresses to try SSE at, for a server without streamable HTTP. Home
// Assistant had SSE at another address than streamable HTTP.
func (s *Server) older(err error) (all []*url.URL) {
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
	all = append(all, s.url)
	if base, ok := strings.CutSuffix(s.url.Path, "/api/mcp"); ok {
		u := *s.url
		u.Path, u.RawPath = base+"/mcp_server/sse", ""
		all = append(all, &u)
	}
	return all
}

// attempt connects in one way, and cleans up if that fails.
func (s *Server) attempt(w way, deadline time.Time) (*link, error) {
	l := &link{stale: make(chan struct{}, 1), ended: make(chan struct{})}
	l.ctx, l.lose = context.WithCancelCause(context.Background())
	late := time.AfterFunc(time.Until(deadline), func() { l.lose(errSlow) })
	closed := context.AfterFunc(s.ctx, func() { l.lose(errClosed) })
	client := sdk.NewClient(&sdk.Implementation{Name: "perch", Title: "Perch", Version: "1"}, &sdk.ClientOptions{
		// Nothing is declared: no roots, no sampling, no questions to the user.
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case l.stale <- struct{}{}:
			default:
			}
		},
	})
	client.AddReceivingMiddleware(refuseQuestions)
	err := s.open(l, client, w)
	if !late.Stop() && err == nil {
		err = errSlow
	}
	closed()
	if err == nil {
		return l, nil
	}
	if cause := l.why(); cause != nil {
		err = cause
	}
	l.lose(err)
	if l.session != nil {
		_ = l.session.Wait()
	}
	if err2 := l.waitTransport(); err2 != nil && !errors.Is(err, errSlow) && !errors.Is(err, errClosed) {
		err = err2
	}
	return nil, err
}

// refuseQuestions refuses requests of servers that were not offered.
func refuseQuestions(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		switch method {
		case "roots/list", "sampling/createMessage", "elicitation/create":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " is not offered here"}
		}
		return next(ctx, method, r)
	}
}

// open opens the connection, and lists the tools.
func (s *Server) open(l *link, client *sdk.Client, w way) (err error) {
	var transport sdk.Transport
	if w.url == nil {
		l.child = newChild(s)
		transport = l.child
	} else {
		transport, l.client = s.transport(l.ctx, w)
	}
	l.session, err = client.Connect(l.ctx, tied{transport}, &sdk.ClientSessionOptions{ProtocolVersion: w.version})
	if err != nil {
		return err
	}
	tools, err := s.list(l.ctx, l.session)
	if err != nil {
		return err
	}
	s.setTools(tools)
	return nil
}

// waitTransport waits until the transport has ended completely, and returns the error
// of a child that ended by itself.
func (l *link) waitTransport() error {
	if l.client != nil {
		l.client.CloseIdleConnections()
	}
	if l.child == nil {
		return nil
	}
	return l.child.exitError()
}

// tied closes a connection when its context ends. Otherwise HTTP would retry for half a
// minute.
type tied struct{ sdk.Transport }

func (t tied) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
	return conn, err
}

// watch waits for the end of a connection, and cleans up.
func (s *Server) watch(l *link) {
	over := make(chan struct{})
	s.wg.Go(func() {
		err := l.session.Wait()
		if err2 := l.waitTransport(); err2 != nil {
			err = err2
		} else if err == nil {
			err = errCut
		}
		l.lose(s.explain(err))
		close(over)
	})
	s.wg.Go(func() { s.refresh(l) })
	select {
	case <-l.ctx.Done():
	case <-s.ctx.Done():
		// An HTTP session must be ended; a child is stopped by closing its input.
		s.wg.Go(func() { _ = l.session.Close() })
		select {
		case <-over:
		case <-time.After(closeWithin):
		}
		l.lose(errClosed)
	}
	<-over
}

// refresh lists the tools again when the server reports a change, which it may do at
// any rate.
func (s *Server) refresh(l *link) {
	for {
		select {
		case <-l.stale:
		case <-l.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeoutCause(l.ctx, s.o.ConnectWithin, errSlow)
		tools, err := s.list(ctx, l.session)
		cancel()
		switch {
		case err == nil:
			s.setTools(tools)
		case l.ctx.Err() == nil:
			s.o.Log.Debug("an MCP server does not list its tools again", "server", s.o.Name, "err", s.explain(err))
		}
		if s.o.Pause(l.ctx, time.Second) != nil {
			return
		}
	}
}
