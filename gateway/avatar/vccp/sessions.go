package vccp

import (
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessionUse records when an MCP session was used.
type sessionUse struct {
	last     time.Time // when the latest request began or ended
	requests int       // requests in progress
	closing  bool      // whether the session is being closed to make room for another
}

// beginRequest records that a request in a session begins. The caller must call end when the
// request has ended.
func (s *Server) beginRequest(session string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.used[session]
	if u == nil {
		return func() {} // there is no such session
	}
	u.requests++
	u.last = s.now()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.requests--
		u.last = s.now()
	}
}

// makeRoom reports whether one more session may be opened, and if so counts that session in s.opening. If
// maxSessions are open, makeRoom closes the session that has been idle for longest, but only if that
// session has been idle for at least minIdle.
func (s *Server) makeRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	open := map[string]bool{}
	remaining := 0
	var idlest *mcp.ServerSession
	since := s.now().Add(-minIdle)
	for session := range s.server.Sessions() {
		open[session.ID()] = true
		u := s.used[session.ID()]
		if u == nil || u.closing { // if u is nil, s.opening includes the session
			continue
		}
		remaining++
		if u.requests == 0 && !u.last.After(since) {
			idlest, since = session, u.last
		}
	}
	maps.DeleteFunc(s.used, func(id string, _ *sessionUse) bool { return !open[id] })
	if remaining+s.opening >= maxSessions {
		if idlest == nil {
			return false
		}
		s.used[idlest.ID()].closing = true
		s.closing.Go(func() { _ = idlest.Close() }) // the error does not matter
	}
	s.opening++
	return true
}

// recordOpened records a session that was opened after makeRoom. session is "" if opening has failed.
func (s *Server) recordOpened(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening--
	if session != "" {
		s.used[session] = &sessionUse{last: s.now()}
	}
}
