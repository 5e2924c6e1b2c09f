package vccp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"perch/device"
)

// character is what a model moves.
type character interface {
	// capability is the data of its capability message, and nil while it has sent
	// none.
	capability() json.RawMessage
	// perceptions are the latest of each category.
	perceptions(now time.Time) []message
	play(ctx context.Context, action message) error
}

// registered is a model that has asked for a character.
type registered struct {
	body  character // nil until one has come
	robot device.ID // where that is a robot's
}

// register has a session be an agent. Naming a robot gives it that one; naming
// none has it wait for a character to come by WebSocket. It reports whether it
// was one already and has its character, which it then keeps, and whether it is
// one for the first time.
func (s *Server) register(session string, robot device.ID) (already, first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false, false, errors.New("the appliance is stopping")
	}
	before, known := s.agents[session]
	if known && robot == before.robot && before.body != nil && before.body.capability() != nil {
		return true, false, nil
	}
	a := &registered{robot: robot}
	if robot != "" {
		a.body = puppet{s, robot}
	}
	s.agents[session] = a
	if known {
		s.letGo(before.body, "registered again")
	}
	return false, !known, nil
}

// letGo closes a character that came by WebSocket. It does not wait for one that
// does not read.
func (s *Server) letGo(c character, why string) {
	if c, ok := c.(*client); ok {
		s.waiting.Go(func() { c.close(why) })
	}
}

// drop forgets an agent after the end of its session.
func (s *Server) drop(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.agents[session]; a != nil {
		s.letGo(a.body, "the session has ended")
		delete(s.agents, session)
	}
}

// body is the character of a session. It is nil where there is none, and known
// reports whether the session is an agent at all.
func (s *Server) body(session string) (c character, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, known := s.agents[session]
	if !known {
		return nil, false
	}
	if a.robot != "" && !s.o.Robots.Trusts(a.robot) {
		return nil, true // it is a stranger by now
	}
	return a.body, true
}

// enter gives an agent the character that has come. The one before is closed.
func (s *Server) enter(session string, c *client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, known := s.agents[session]
	if !known || a.robot != "" || s.stopping {
		return errInvalid
	}
	s.letGo(a.body, "replaced")
	a.body = c
	s.sockets[c] = true
	s.waiting.Add(1)
	return nil
}

// quoted is an error in the words of the protocol's own server, which clients may
// look for.
type quoted string

func (q quoted) Error() string { return string(q) }

// errInvalid ends a socket with a session that is not an agent's.
const errInvalid = quoted("Invalid session ID")

// exit takes a character away that has left. Its agent stays.
func (s *Server) exit(session string, c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sockets, c)
	s.waiting.Done()
	if a := s.agents[session]; a != nil && a.body == character(c) {
		a.body = nil
	}
}

// play has the character of a session do something.
func (s *Server) play(ctx context.Context, session string, action message) error {
	body, known := s.body(session)
	if !known {
		return errors.New("this session is no agent yet; call register-agent first")
	}
	if body == nil || body.capability() == nil {
		return quoted(fmt.Sprintf("Client for session %s is not connected", session))
	}
	return body.play(ctx, action)
}

// perceived is the latest of each category that a session's character senses,
// and of one category, where only that is wanted.
func (s *Server) perceived(session, category string) any {
	body, known := s.body(session)
	if !known {
		return nil
	}
	all := []message{}
	if body != nil {
		all = append(all, body.perceptions(time.Now())...)
	}
	if category == "" {
		return all
	}
	i := slices.IndexFunc(all, func(m message) bool { return m.Category == category })
	if i < 0 {
		return nil
	}
	return all[i]
}
