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

// Internal errors; explain turns them into sentences.
var (
	errSlow       = errors.New("it takes too long")
	errCut        = errors.New("the connection was cut")
	errNoMCP      = errors.New("what comes is not of the protocol")
	errTooLong    = fmt.Errorf("the answer is longer than %d MB, which is more than is taken; ask for less", limit.Message>>20)
	errNotReading = errors.New("it does not read its messages")
	errElsewhere  = errors.New("it wants messages to go to another machine, which would get the key")
	errBusy       = errors.New("too many requests are under way")
)

// absence is the reason why a server cannot be used, as one sentence. It is an
// agent.ErrAway without that error's text, which is about brains.
type absence struct{ error }

func (absence) Is(target error) bool { return target == agent.ErrAway }
func (a absence) Unwrap() error      { return a.error }

func awayf(format string, args ...any) error { return absence{fmt.Errorf(format, args...)} }

// absent returns an absence whose sentence begins with the server's name.
func (s *Server) absent(sentence string) error { return absence{s.server.Fault(sentence)} }

// refusal is an unsuccessful HTTP response of a server.
type refusal struct {
	remote.Refusal
	session bool // the request was part of a session
}

func (r *refusal) Error() string { return fmt.Sprintf("HTTP %d", r.Status) }

// forgotten reports whether a server refuses a call because it does not know the
// session any more, for instance after a restart.
func forgotten(l *link, err error) bool {
	var r *refusal
	return errors.Is(err, sdk.ErrSessionMissing) || errors.As(err, &r) && r.Status == http.StatusNotFound && r.session && l.ctx.Err() == nil
}

// answerOf returns the error that a server sent as its answer, or nil. The SDK uses the
// same type for its own errors.
func answerOf(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if !errors.As(err, &e) || -32005 <= e.Code && e.Code <= -32003 && slices.Contains(
		[]string{"rejected by transport", "server is closing", "client is closing"}, e.Message) {
		return nil
	}
	return e
}

// broken explains a failed request, and drops the connection if that is the cause.
func (s *Server) broken(ctx context.Context, l *link, err error) error {
	refused := answerOf(err)
	var status *refusal
	switch {
	case s.ctx.Err() != nil:
		return errClosed
	case ctx.Err() != nil:
		if errors.Is(context.Cause(ctx), errSlow) && s.countTimeout() {
			l.lose(s.absent("has not answered for a while and is connected anew"))
		}
		return s.slow(ctx)
	case errors.Is(err, errTooLong), errors.Is(err, errNoMCP), errors.Is(err, errBusy):
		return s.explain(err)
	case refused != nil:
		s.recordAnswer()
		return errors.New("it refuses: " + cmp.Or(s.server.Quote(refused.Message), "it does not say why"))
	case errors.As(err, &status) && status.Status != http.StatusUnauthorized && status.Status != http.StatusNotFound:
		return s.explain(err)
	case l.child != nil && (errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF)), l.ctx.Err() != nil:
		// The reason is set when the end of the process is handled.
		select {
		case <-l.ctx.Done():
			return l.why()
		case <-ctx.Done():
			return s.slow(ctx)
		}
	}
	err = s.explain(err)
	l.lose(err)
	return err
}

// countTimeout counts a call that was not answered in time, and reports whether there
// were too many.
func (s *Server) countTimeout() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent++
	return s.silent >= mostTimeouts
}

// slow returns the error for an ended context.
func (s *Server) slow(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return errClosed
	}
	if errors.Is(context.Cause(ctx), errSlow) {
		return s.absent("does not answer in time")
	}
	return ctx.Err()
}

// explain returns a one-sentence error with cause and cure.
func (s *Server) explain(err error) error {
	var known absence
	var status *refusal
	refused := answerOf(err)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &status):
		return absence{s.refusal(status)}
	case errors.Is(err, errSlow):
		return s.absent("does not answer in " + s.o.ConnectWithin.Round(time.Millisecond).String() +
			"; see that it runs, and that it is an MCP server")
	case errors.Is(err, errNoMCP) && s.url == nil:
		return s.absent("does not speak MCP; see that its arguments make it an MCP server on standard input and output")
	case errors.Is(err, errNoMCP):
		return s.absent("is not an MCP server; is the path in url right (such as /mcp)?")
	case refused != nil:
		return s.absent("refuses to begin: " + cmp.Or(s.server.Quote(refused.Message), "it does not say why"))
	case errors.Is(err, sdk.ErrSessionMissing):
		return s.absent("has been started anew and does not know the session any more")
	}
	for _, own := range []error{errTooLong, errNotReading, errElsewhere, errBusy} {
		if errors.Is(err, own) {
			return awayf("%s: %w", s.where(), own)
		}
	}
	if errors.Is(err, errCut) || errors.Is(err, sdk.ErrConnectionClosed) || strings.Contains(err.Error(), "retries without progress") {
		err = io.ErrUnexpectedEOF
	}
	return absence{s.server.Unreachable(err, false)}
}

// refusal explains errors that are specific to an MCP server.
func (s *Server) refusal(r *refusal) error {
	if r.Status == http.StatusNotFound || r.Status == http.StatusMethodNotAllowed {
		return s.server.Faultf("there is no MCP server at %s (HTTP %d); is the path in url right (such as /mcp)?", s.where(), r.Status)
	}
	return s.server.Refused("", r.Refusal)
}

// secrets returns the parts of the options that are never shown, the longest first, so
// that none is replaced within another.
func (s *Server) secrets() (all []string) {
	add := func(text string, least int) {
		if len(text) >= least {
			all = append(all, text)
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
		case joined && secretive().MatchString(name):
			add(value, 4)
		case i > 0 && secretive().MatchString(s.o.Command[i-1]) && !strings.Contains(s.o.Command[i-1], "="):
			add(arg, 4)
		}
	}
	if s.url != nil {
		password, _ := s.url.User.Password()
		add(password, 1)
		for part := range strings.SplitSeq(s.url.Path, "/") {
			add(part, longestWord+1)
		}
		for _, values := range s.url.Query() {
			for _, value := range values {
				add(value, 4)
				add(url.QueryEscape(value), 4)
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// secretive matches the names of arguments whose values are not shown.
var secretive = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)(key|token|secret|passw(or)?d|auth|header)$`) })
