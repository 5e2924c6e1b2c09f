package vccp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"perch/device"
	"perch/socket"
)

// character is a character that a model moves.
type character interface {
	// capability returns the data of its capability message, or nil before that.
	capability() json.RawMessage
	// perceptions returns the latest of each category.
	perceptions(now time.Time) []message
	play(ctx context.Context, action message) error
}

// registered is a session that has registered as an agent.
type registered struct {
	body  character // nil until one has connected
	robot device.ID // of a robot's character
}

// register makes a session an agent. Its character is a robot or, if robot is "", connects by
// WebSocket. already reports that it has that character and keeps it; first that
// the session was not registered before.
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
		a.body = robotCharacter{s, robot}
	}
	s.agents[session] = a
	if known {
		s.closeCharacter(before.body, "registered again")
	}
	return false, !known, nil
}

// closeCharacter closes a character's WebSocket, if it has one, on another goroutine, because
// the character may not read.
func (s *Server) closeCharacter(c character, why string) {
	if c, ok := c.(*client); ok {
		s.waiting.Go(func() { c.conn.Close(socket.Normal, why) })
	}
}

// drop removes an agent at the end of its session.
func (s *Server) drop(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.agents[session]; a != nil {
		s.closeCharacter(a.body, "the session has ended")
		delete(s.agents, session)
	}
}

// body returns the character of a session, or nil. known reports whether the session is an
// agent.
func (s *Server) body(session string) (c character, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, known := s.agents[session]
	if !known {
		return nil, false
	}
	if a.robot != "" && !s.o.Robots.Trusts(a.robot) {
		return nil, true // no longer adopted
	}
	return a.body, true
}

// enter gives an agent a connected character, and closes the previous one.
func (s *Server) enter(session string, c *client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, known := s.agents[session]
	if !known || a.robot != "" || s.stopping {
		return errInvalid
	}
	s.closeCharacter(a.body, "replaced")
	a.body = c
	s.sockets[c] = true
	s.waiting.Add(1)
	return nil
}

// quoted is an error in the words of the reference server, which clients may compare.
type quoted string

func (q quoted) Error() string { return string(q) }

// errInvalid closes the socket of a session that is not an agent.
const errInvalid = quoted("Invalid session ID")

// exit removes a character that has left from its agent.
func (s *Server) exit(session string, c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sockets, c)
	s.waiting.Done()
	if a := s.agents[session]; a != nil && a.body == character(c) {
		a.body = nil
	}
}

// play performs an action with the character of a session.
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

// perceived returns the latest perception of each category of a session's character, or only
// that of one category.
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
