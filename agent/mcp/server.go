package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"perch/agent/thinker"
	"perch/limit"
	"perch/plain"
	"perch/remote"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tools are those that the server offers, under names that begin with its own.
// It answers at once with what is known, also while the server is away; only
// where nothing is known yet does it wait for a connection under way, as long
// as ctx lives.
func (s *Server) Tools(ctx context.Context) []thinker.Tool {
	s.mu.Lock()
	listed := s.listed
	s.mu.Unlock()
	if listed {
		s.use()
	} else if _, err := s.connected(ctx); err != nil {
		return nil // the reason is logged
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]thinker.Tool(nil), s.tools...)
}

// Warm connects where there is no connection.
func (s *Server) Warm(ctx context.Context) error {
	_, err := s.connected(ctx)
	return err
}

// Check returns in one sentence why the server's tools could not be used. It
// asks the server for a sign of life.
func (s *Server) Check(ctx context.Context) error {
	l, err := s.connected(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.ConnectWithin, errSlow)
	defer cancel()
	// Also a refusal is a sign of life.
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

// Call has the server run a tool and returns what it says. The name is one
// that Tools gave. A tool that fails is an error with its own words. Where ctx
// ends the server is notified, and Call returns at once.
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
			l.lose(s.explain(err)) // it has not run the tool
			continue
		}
		if err != nil {
			return "", s.broken(ctx, l, err)
		}
		s.noteAnswer()
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

// noteAnswer notes that a call was answered.
func (s *Server) noteAnswer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.silent = 0, 0
}

// Close ends the connection, and a child with all of its group, and waits until
// all has ended. Calls that run fail.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.wg.Wait()
	return nil
}

// use makes the keeper run.
func (s *Server) use() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if !s.kept {
		s.kept, s.trying = true, make(chan struct{})
		s.wg.Go(s.keep)
	}
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// connected is the connection. It waits for an attempt under way, as long as
// ctx lives, but not for one that is yet to begin.
func (s *Server) connected(ctx context.Context) (*link, error) {
	s.use()
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
		case trying == nil: // the keeper is about to see that it is gone
			trying = l.gone
		}
		select {
		case <-trying:
		case <-ctx.Done():
			return nil, s.slow(ctx)
		}
	}
}

// keep is the keeper.
func (s *Server) keep() {
	for {
		born := time.Now()
		l, err := s.connect()
		s.tried(l, err)
		if err == nil {
			s.attend(l)
			if time.Since(born) > settled {
				s.noteAnswer()
			}
			s.lost(l)
		}
		if s.rest() != nil {
			return
		}
	}
}

// tried notes how an attempt ended.
func (s *Server) tried(l *link, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.why = l, err
	close(s.trying)
	s.trying = nil
	switch {
	case s.ctx.Err() != nil:
	case err != nil && !s.away:
		s.o.Log.Warn("an MCP server is away", "server", s.o.Name, "err", err)
		s.away = true
	case err == nil && s.away && s.met:
		s.o.Log.Info("an MCP server is back", "server", s.o.Name)
	case err == nil && !s.met:
		s.o.Log.Info("an MCP server is connected", "server", s.o.Name)
	}
	if err == nil {
		s.away, s.met = false, true
	}
}

// lost notes that a connection is gone for good. Who asks meanwhile waits for
// the next attempt where it is the first since, and does not learn of a
// connection that was cut and made anew at once, as proxies have it.
func (s *Server) lost(l *link) {
	why := l.why()
	defer close(l.gone)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.why, s.silent = nil, why, 0
	if s.failures == 0 {
		s.trying = make(chan struct{})
	}
	if s.ctx.Err() == nil && l.child != nil && !s.away {
		s.o.Log.Warn("an MCP server is away", "server", s.o.Name, "err", why, "stderr", remote.Scrub(l.child.program.Stderr(), s.server.Secrets...))
		s.away = true
	}
}

// rest waits before the next attempt: longer from time to time, and in the end
// until the next call.
func (s *Server) rest() error {
	s.mu.Lock()
	d := limit.Restart(s.failures)
	s.failures++
	idle := s.failures > patience
	select {
	case <-s.asked: // before it was known to be away
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
