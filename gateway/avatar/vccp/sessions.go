package vccp

import (
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// use is when a session was last asked for something.
type use struct {
	last   time.Time
	asking int  // requests under way
	leaves bool // it has given way to another
}

// use takes note of a request within a session, and of its end.
func (s *Server) use(session string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.used[session]
	if u == nil {
		return func() {} // there is no such session
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

// makeRoom makes room for one more session, and reports whether there is some. The
// one that has been idle for longest gives way; one that has just been used does
// not.
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
		if u == nil || u.leaves { // not noted yet: it counts as being opened
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
		s.waiting.Go(func() { _ = idlest.Close() }) // its end is all that is wanted
	}
	s.opening++
	return true
}

// begun takes note of the session that was opened, if one was.
func (s *Server) begun(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening--
	if session != "" {
		s.used[session] = &use{last: s.now()}
	}
}
