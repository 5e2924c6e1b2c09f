package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/limit"
	"perch/remote"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Internal errors. Server.explain converts them to sentences for the owner.
var (
	errSlow       = errors.New("it takes too long")
	errCut        = errors.New("the connection was cut")
	errNoMCP      = errors.New("its output is not MCP")
	errTooLong    = fmt.Errorf("the response is longer than %d MB, the most that is accepted; ask for less", limit.Message>>20)
	errNotReading = errors.New("it does not read its messages")
	errElsewhere  = errors.New("it wants messages to go to another machine, which would get the key")
	errBusy       = errors.New("too many requests are running")
)

// awayError is the reason why a server cannot be used, as one sentence. It matches
// agent.ErrAway, but leaves out the text of agent.ErrAway, which is about brains.
type awayError struct{ error }

// Is reports whether target is agent.ErrAway.
func (awayError) Is(target error) bool { return target == agent.ErrAway }

// Unwrap returns the error that a contains.
func (a awayError) Unwrap() error { return a.error }

// awayf formats an awayError.
func awayf(format string, args ...any) error { return awayError{fmt.Errorf(format, args...)} }

// awayBecause returns an awayError: the server's name followed by sentence.
func (s *Server) awayBecause(sentence string) error { return awayError{s.server.Fault(sentence)} }

// refusal is an unsuccessful HTTP response of a server.
type refusal struct {
	remote.Refusal
	session bool // whether the request was part of a session
}

// Error returns the status of the response.
func (r *refusal) Error() string { return fmt.Sprintf("HTTP %d", r.Status) }

// isSessionLost reports whether a call failed because the server no longer knows the
// session, for instance after a restart.
func isSessionLost(l *link, err error) bool {
	var r *refusal
	return errors.Is(err, sdk.ErrSessionMissing) || errors.As(err, &r) && r.Status == http.StatusNotFound && r.session && l.ctx.Err() == nil
}

// errorResponse returns the JSON-RPC error that the server sent, or nil if err is of another
// kind. The SDK uses the same type for its own errors, which are excluded here.
func errorResponse(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if !errors.As(err, &e) || -32005 <= e.Code && e.Code <= -32003 && slices.Contains(
		[]string{"rejected by transport", "server is closing", "client is closing"}, e.Message) {
		return nil
	}
	return e
}

// requestError explains why a request over l failed. If l itself has failed, or too many
// calls in a row have timed out, requestError ends l.
func (s *Server) requestError(ctx context.Context, l *link, err error) error {
	refused := errorResponse(err)
	var status *refusal
	switch {
	case s.ctx.Err() != nil:
		return errClosed
	case ctx.Err() != nil:
		if errors.Is(context.Cause(ctx), errSlow) && s.countTimeout() {
			l.end(s.awayBecause("has not answered for a while and is connected again"))
		}
		return s.endedError(ctx)
	case errors.Is(err, errTooLong), errors.Is(err, errNoMCP), errors.Is(err, errBusy):
		return s.explain(err)
	case refused != nil:
		s.resetFailures()
		return errors.New("it refuses: " + cmp.Or(s.server.Quote(refused.Message), "it does not say why"))
	case errors.As(err, &status) && status.Status != http.StatusUnauthorized && status.Status != http.StatusNotFound:
		return s.explain(err)
	case l.child != nil && (errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe)), l.ctx.Err() != nil:
		// Server.watch sets the reason once it has noticed the end of the connection.
		select {
		case <-l.ctx.Done():
			return l.err()
		case <-ctx.Done():
			return s.endedError(ctx)
		}
	}
	err = s.explain(err)
	l.end(err)
	return err
}

// countTimeout counts a call that timed out, and reports whether there were too many in a
// row.
func (s *Server) countTimeout() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timeouts++
	return s.timeouts >= maxTimeouts
}

// endedError returns the error of a request whose context has ended.
func (s *Server) endedError(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return errClosed
	}
	if errors.Is(context.Cause(ctx), errSlow) {
		return s.awayBecause("does not answer in time")
	}
	return ctx.Err()
}

// explain returns an awayError that names the cause of err and what to do about it.
func (s *Server) explain(err error) error {
	var away awayError
	var status *refusal
	refused := errorResponse(err)
	switch {
	case errors.As(err, &away):
		return away
	case errors.As(err, &status):
		return awayError{s.explainRefusal(status)}
	case errors.Is(err, errSlow):
		return s.awayBecause("does not answer in " + s.o.ConnectWithin.Round(time.Millisecond).String() +
			"; see that it runs, and that it is an MCP server")
	case errors.Is(err, errNoMCP) && s.url == nil:
		return s.awayBecause("does not speak MCP; see that its arguments make it an MCP server on standard input and output")
	case errors.Is(err, errNoMCP):
		return s.awayBecause("is not an MCP server; is the path in url right (such as /mcp)?")
	case refused != nil:
		return s.awayBecause("refuses to begin: " + cmp.Or(s.server.Quote(refused.Message), "it does not say why"))
	case errors.Is(err, sdk.ErrSessionMissing):
		return s.awayBecause("was restarted and no longer knows the session")
	}
	for _, target := range []error{errTooLong, errNotReading, errElsewhere, errBusy} {
		if errors.Is(err, target) {
			return awayf("%s: %w", s.displayName(), target)
		}
	}
	if errors.Is(err, errCut) || errors.Is(err, sdk.ErrConnectionClosed) || strings.Contains(err.Error(), "retries without progress") {
		err = io.ErrUnexpectedEOF
	}
	return awayError{s.server.Unreachable(err, false)}
}

// explainRefusal explains an unsuccessful HTTP response.
func (s *Server) explainRefusal(r *refusal) error {
	if r.Status == http.StatusNotFound && strings.HasSuffix(s.url.Path, "/api/mcp") {
		return s.server.Faultf("there is no MCP server at %s (HTTP 404); if it is Home Assistant's, add the integration Model Context Protocol Server there, "+
			"or update Home Assistant", s.displayName())
	}
	if r.Status == http.StatusNotFound || r.Status == http.StatusMethodNotAllowed {
		return s.server.Faultf("there is no MCP server at %s (HTTP %d); is the path in url right (such as /mcp)?", s.displayName(), r.Status)
	}
	return s.server.Refused("", r.Refusal)
}

// secrets returns the parts of the options that must not be shown. Short values are left
// out, except the key and a password, because they may occur in any text. The longest secrets come first and are
// also replaced first, because a secret may contain a shorter one.
func (s *Server) secrets() (secrets []string) {
	add := func(text string, minLength int) {
		if len(text) >= minLength {
			secrets = append(secrets, text)
		}
	}
	add(s.o.Key, 1)
	for _, entry := range s.o.Env {
		_, value, _ := strings.Cut(entry, "=")
		add(value, 8)
	}
	for i, arg := range s.o.Command {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case joined && secretName().MatchString(name):
			add(value, 4)
		case i > 0 && secretName().MatchString(s.o.Command[i-1]) && !strings.Contains(s.o.Command[i-1], "="):
			add(arg, 4)
		}
	}
	if s.url != nil {
		password, _ := s.url.User.Password()
		add(password, 1)
		for part := range strings.SplitSeq(s.url.Path, "/") {
			add(part, maxShownPart+1)
		}
		for _, values := range s.url.Query() {
			for _, value := range values {
				add(value, 4)
				add(url.QueryEscape(value), 4)
			}
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return secrets
}

// secretName matches names of arguments whose values must not be shown.
var secretName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)(key|token|secret|passw(or)?d|auth|header)$`) })
