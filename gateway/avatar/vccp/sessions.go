package vccp

import (
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// use is the use of a session.
type use struct {
	last   time.Time // of its last request
	asking int       // current requests
	leaves bool      // it is being closed for another
}

// use records a request in a session, and its end.
func (s *Server) use(session string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.used[session]
	if u == nil {
		return func() {} // unknown
	}
	u.asking++
	u.last = s.now()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.asking--
		u.last = s.now()
	}
}

// makeRoom reports whether there is room for one more session. It closes the session that has
// been idle for longest if necessary, but none that was used within leastIdle.
func (s *Server) makeRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	open := map[string]bool{}
	staying := 0
	var idlest *mcp.ServerSession
	since := s.now().Add(-leastIdle)
	for session := range s.server.Sessions() {
		open[session.ID()] = true
		u := s.used[session.ID()]
		if u == nil || u.leaves { // not recorded yet: counted as opening
			continue
		}
		staying++
		if u.asking == 0 && !u.last.After(since) {
			idlest, since = session, u.last
		}
	}
	maps.DeleteFunc(s.used, func(id string, _ *use) bool { return !open[id] })
	if staying+s.opening >= mostSessions {
		if idlest == nil {
			return false
		}
		s.used[idlest.ID()].leaves = true
		s.waiting.Go(func() { _ = idlest.Close() }) // the error does not matter
	}
	s.opening++
	return true
}

// recordOpened records the session that was opened, if any.
func (s *Server) recordOpened(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening--
	if session != "" {
		s.used[session] = &use{last: s.now()}
	}
}
