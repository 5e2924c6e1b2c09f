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

// Tools returns the server's tools, with its name as prefix. It returns the known tools
// at once, even while the server is unavailable; only before the first list does it
// wait for an attempt to connect, until ctx ends.
func (s *Server) Tools(ctx context.Context) []thinker.Tool {
	s.mu.Lock()
	listed := s.listed
	s.mu.Unlock()
	if listed {
		s.start()
	} else if _, err := s.connected(ctx); err != nil {
		return nil // the reason is logged
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tools)
}

// Warm connects if necessary.
func (s *Server) Warm(ctx context.Context) error {
	_, err := s.connected(ctx)
	return err
}

// Check returns in one sentence why the server's tools cannot be used, or nil. It
// pings the server.
func (s *Server) Check(ctx context.Context) error {
	l, err := s.connected(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.ConnectWithin, errSlow)
	defer cancel()
	// An error response also shows that the server is alive.
	if err := l.session.Ping(ctx, nil); err != nil && answerOf(err) == nil {
		return s.broken(ctx, l, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed && len(s.tools) == 0 {
		return s.absent("offers no tools that may be used; see what it offers, and what only and except leave of it")
	}
	return nil
}

// Call runs a tool, by a name from Tools, and returns its output. The error of a
// failed tool has the tool's own words. If ctx ends the server is notified, and Call
// returns at once.
func (s *Server) Call(ctx context.Context, name string, args json.RawMessage) (string, error) {
	own, ours := strings.CutPrefix(name, s.o.Name+".")
	if !ours || !s.allowed(own) {
		return "", fmt.Errorf("%s has no tool %q that may be used", s.o.Name, plain.Clip(name, limit.ID))
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.CallWithin, errSlow)
	defer cancel()
	for again := true; ; again = false {
		l, err := s.connected(ctx)
		if err != nil {
			return "", err
		}
		result, err := s.ask(ctx, l, own, args)
		if again && forgotten(l, err) {
			l.lose(s.explain(err)) // it did not run the tool
			continue
		}
		if err != nil {
			return "", s.broken(ctx, l, err)
		}
		s.recordAnswer()
		return textOf(result)
	}
}

// ask makes the call, which ends with the connection or Close at the latest.
func (s *Server) ask(ctx context.Context, l *link, own string, args json.RawMessage) (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	result, err := l.session.CallTool(ctx, &sdk.CallToolParams{Name: own, Arguments: args})
	if err == nil && result == nil {
		err = errors.New("an empty answer")
	}
	return result, err
}

// recordAnswer resets the count of calls without an answer.
func (s *Server) recordAnswer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.silent = 0, 0
}

// Close ends the connection, stops a child with its process group, and waits until all
// have ended. Running calls fail.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.wg.Wait()
	return nil
}

// start starts keepConnected if necessary.
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
	case s.asked <- struct{}{}:
	default:
	}
}

// connected returns the connection. It waits until ctx ends for an attempt under way, but
// not for the next attempt.
func (s *Server) connected(ctx context.Context) (*link, error) {
	s.start()
	for {
		s.mu.Lock()
		l, trying, why := s.link, s.trying, s.why
		closed := s.closed
		s.mu.Unlock()
		switch {
		case closed:
			return nil, errClosed
		case l != nil && l.ctx.Err() == nil:
			return l, nil
		case trying == nil && l == nil:
			return nil, why
		case trying == nil: // keepConnected has not noticed the end yet
			trying = l.ended
		}
		select {
		case <-trying:
		case <-ctx.Done():
			return nil, s.slow(ctx)
		}
	}
}

// keepConnected connects and reconnects until Close.
func (s *Server) keepConnected() {
	for {
		born := time.Now()
		l, err := s.connect()
		s.recordAttempt(l, err)
		if err == nil {
			s.watch(l)
			if time.Since(born) > stableAfter {
				s.recordAnswer()
			}
			s.recordEnd(l)
		}
		if s.backOff() != nil {
			return
		}
	}
}

// recordAttempt records the result of an attempt.
func (s *Server) recordAttempt(l *link, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.why = l, err
	close(s.trying)
	s.trying = nil
	switch {
	case s.ctx.Err() != nil:
	case err != nil && !s.loggedAway:
		s.o.Log.Warn("an MCP server is away", "server", s.o.Name, "err", err)
		s.loggedAway = true
	case err == nil && s.loggedAway && s.wasConnected:
		s.o.Log.Info("an MCP server is back", "server", s.o.Name)
	case err == nil && !s.wasConnected:
		s.o.Log.Info("an MCP server is connected", "server", s.o.Name)
	}
	if err == nil {
		s.loggedAway, s.wasConnected = false, true
	}
}

// recordEnd records the end of a connection. If it is the first since the last attempt,
// callers wait for the next one, and do not notice a connection that is cut and
// restored at once, as proxies do.
func (s *Server) recordEnd(l *link) {
	why := l.why()
	defer close(l.ended)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.why, s.silent = nil, why, 0
	if s.failures == 0 {
		s.trying = make(chan struct{})
	}
	if s.ctx.Err() == nil && l.child != nil && !s.loggedAway {
		s.o.Log.Warn("an MCP server is away", "server", s.o.Name, "err", why, "stderr", remote.Scrub(l.child.program.Stderr(), s.server.Secrets...))
		s.loggedAway = true
	}
}

// backOff waits before the next attempt: increasingly long, and finally until the next
// call.
func (s *Server) backOff() error {
	s.mu.Lock()
	d := limit.Restart(s.failures)
	s.failures++
	idle := s.failures > mostAttempts
	select {
	case <-s.asked: // requested before it was known to be unavailable
	default:
	}
	s.mu.Unlock()
	err := s.o.Pause(s.ctx, d)
	if err == nil && idle {
		select {
		case <-s.asked:
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
		s.link, s.why = nil, errClosed
		close(s.trying)
		s.trying = nil
	}
	return err
}
