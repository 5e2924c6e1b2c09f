package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/agent/thinker"
	"perch/limit"
	"perch/plain"
	"perch/remote"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tools returns the server's tools, their names prefixed with the server's name. Once the
// tools have been listed, it returns them without waiting, even while the server is
// unavailable. Before that it waits for the current attempt to connect, if there is one, or the
// end of ctx; without a connection it returns nil.
func (s *Server) Tools(ctx context.Context) []thinker.Tool {
	s.mu.Lock()
	listed := s.listed
	s.mu.Unlock()
	if listed {
		s.start()
	} else if _, err := s.waitConnected(ctx); err != nil {
		return nil // recordAttempt logs failures to connect
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tools)
}

// Warm connects to the server if it is not connected, and waits for the result or the end of
// ctx. Between attempts to connect it returns the error of the last attempt.
func (s *Server) Warm(ctx context.Context) error {
	_, err := s.waitConnected(ctx)
	return err
}

// Check pings the server. It returns an error of one sentence if the server cannot be
// reached or has no tools that may be used.
func (s *Server) Check(ctx context.Context) error {
	l, err := s.waitConnected(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.ConnectWithin, errSlow)
	defer cancel()
	// An error response also shows that the server is alive.
	if err := l.session.Ping(ctx, nil); err != nil && errorResponse(err) == nil {
		return s.requestError(ctx, l, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed && len(s.tools) == 0 {
		return s.awayBecause("offers no tools that may be used; compare its tools with the settings only and except")
	}
	return nil
}

// Call calls the tool with this name, as returned by Tools, and returns its output. If the
// tool fails, the error is the tool's own text. If the server no longer knows the session,
// Call repeats the call once, over a new connection. If ctx ends, Call notifies the server
// and returns without waiting.
func (s *Server) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	tool, ok := strings.CutPrefix(name, s.o.Name+".")
	if !ok || !s.isAllowed(tool) {
		return "", fmt.Errorf("%s has no tool %q that may be used", s.o.Name, plain.Clip(name, limit.ID))
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.CallWithin, errSlow)
	defer cancel()
	for retry := true; ; retry = false {
		l, err := s.waitConnected(ctx)
		if err != nil {
			return "", err
		}
		result, err := s.callTool(ctx, l, tool, args)
		if retry && isSessionLost(l, err) {
			l.end(s.explain(err)) // the server did not run the tool, so the call can be repeated
			continue
		}
		if err != nil {
			return "", s.requestError(ctx, l, err)
		}
		s.resetFailures()
		return resultText(result)
	}
}

// callTool calls the tool over l. It fails if the connection ends or Close is called.
func (s *Server) callTool(ctx context.Context, l *link, tool string, args json.RawMessage) (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	result, err := l.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
	if err == nil && result == nil {
		err = errors.New("an empty response")
	}
	return result, err
}

// resetFailures resets the counts of failed attempts and of calls that timed out.
func (s *Server) resetFailures() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.timeouts = 0, 0
}

// Close ends the connection, stops a child and its process group, and waits for their end.
// Running calls fail.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
	return nil
}

// start starts keepConnected if it does not run, and makes it connect without a further
// pause if it waits for the next use.
func (s *Server) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if !s.started {
		s.started, s.trying = true, make(chan struct{})
		s.wg.Go(s.keepConnected)
	}
	select {
	case s.needed <- struct{}{}:
	default:
	}
}

// waitConnected returns the connection. It waits for the current attempt to connect or the
// end of ctx; between attempts it returns the error of the last attempt.
func (s *Server) waitConnected(ctx context.Context) (*link, error) {
	s.start()
	for {
		s.mu.Lock()
		l, trying, linkErr := s.link, s.trying, s.linkErr
		closed := s.closed
		s.mu.Unlock()
		switch {
		case closed:
			return nil, errClosed
		case l != nil && l.ctx.Err() == nil:
			return l, nil
		case trying == nil && l == nil:
			return nil, linkErr
		case trying == nil: // keepConnected has not noticed the end yet
			trying = l.ended
		}
		select {
		case <-trying:
		case <-ctx.Done():
			return nil, s.endedError(ctx)
		}
	}
}

// keepConnected connects and reconnects until Close.
func (s *Server) keepConnected() {
	for {
		start := time.Now()
		l, err := s.connect()
		s.recordAttempt(l, err)
		if err == nil {
			s.watch(l)
			if time.Since(start) > stableAfter {
				s.resetFailures()
			}
			s.recordEnd(l)
		}
		if s.backOff() != nil {
			return
		}
	}
}

// recordAttempt stores and logs the result of an attempt to connect.
func (s *Server) recordAttempt(l *link, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.linkErr = l, err
	close(s.trying)
	s.trying = nil
	switch {
	case s.ctx.Err() != nil:
	case err != nil && !s.loggedAway:
		s.o.Log.Warn("an MCP server cannot be used", "server", s.o.Name, "err", err)
		s.loggedAway = true
	case err == nil && s.loggedAway && s.wasConnected:
		s.o.Log.Info("an MCP server can be used again", "server", s.o.Name)
	case err == nil && !s.wasConnected:
		s.o.Log.Info("an MCP server is connected", "server", s.o.Name)
	}
	if err == nil {
		s.loggedAway, s.wasConnected = false, true
	}
}

// recordEnd stores the end of a connection, and logs it for a child. If failures is 0,
// callers wait for the next attempt instead of failing, because some proxies cut connections
// that can be restored at once.
func (s *Server) recordEnd(l *link) {
	err := l.err()
	defer close(l.ended)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.linkErr, s.timeouts = nil, err, 0
	if s.failures == 0 {
		s.trying = make(chan struct{})
	}
	if s.ctx.Err() == nil && l.child != nil && !s.loggedAway {
		s.o.Log.Warn("an MCP server cannot be used", "server", s.o.Name, "err", err, "stderr", remote.Scrub(l.child.program.Stderr(), s.server.Secrets...))
		s.loggedAway = true
	}
}

// backOff waits before the next attempt to connect. The pause grows with each failed attempt or ended connection; after
// maxAttempts it lasts until the next use. It returns an error after Close.
func (s *Server) backOff() error {
	s.mu.Lock()
	d := limit.Restart(s.failures)
	s.failures++
	idle := s.failures > maxAttempts
	select {
	case <-s.needed: // a caller from before the failure does not count as the next use
	default:
	}
	s.mu.Unlock()
	err := s.o.Pause(s.ctx, d)
	if err == nil && idle {
		select {
		case <-s.needed:
		case <-s.ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trying == nil {
		s.trying = make(chan struct{})
	}
	if err == nil {
		err = s.ctx.Err()
	}
	if err != nil {
		s.link, s.linkErr = nil, errClosed
		close(s.trying)
		s.trying = nil
	}
	return err
}
