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

// character performs the actions of a model. It is a robot (robotCharacter) or a program that is
// connected by WebSocket (client).
type character interface {
	// capability returns the data of the character's capability message, or nil before the
	// character has sent that message.
	capability() json.RawMessage
	// perceptions returns the latest perception of each category.
	perceptions(now time.Time) []message
	// play makes the character perform an action.
	play(ctx context.Context, action message) error
}

// registeredAgent is an MCP session that has registered as an agent.
type registeredAgent struct {
	character character // nil if no character is connected
	robot     device.ID // the robot that is the character, or ""
}

// register registers a session as an agent. The character of the agent is a robot or, if robot is "",
// a program that connects by WebSocket. If the session already has that character, and the character has
// sent its capability, register changes nothing, and already is true. first is true if the session was not
// registered before. register returns an error after Close.
func (s *Server) register(session string, robot device.ID) (already, first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false, false, errors.New("the appliance is stopping")
	}
	before, exists := s.agents[session]
	if exists && robot == before.robot && before.character != nil && before.character.capability() != nil {
		return true, false, nil
	}
	a := &registeredAgent{robot: robot}
	if robot != "" {
		a.character = robotCharacter{s, robot}
	}
	s.agents[session] = a
	if exists {
		s.closeCharacter(before.character, "registered again")
	}
	return false, !exists, nil
}

// closeCharacter closes the WebSocket of a character, unless the character is a robot. It does so on
// another goroutine, because closing blocks if the character does not read.
func (s *Server) closeCharacter(c character, reason string) {
	if c, ok := c.(*client); ok {
		s.closing.Go(func() { c.conn.Close(socket.Normal, reason) })
	}
}

// unregister removes the agent of a session that has ended.
func (s *Server) unregister(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.agents[session]; a != nil {
		s.closeCharacter(a.character, "the session has ended")
		delete(s.agents, session)
	}
}

// characterOf returns the character of a session, or nil if the session has no character. registered
// reports whether the session has registered as an agent.
func (s *Server) characterOf(session string) (c character, registered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, registered := s.agents[session]
	if !registered {
		return nil, false
	}
	if a.robot != "" && !s.o.Robots.Trusts(a.robot) {
		return nil, true // the robot is no longer adopted
	}
	return a.character, true
}

// attach makes c the character of a session's agent, and closes the previous character. It returns
// errInvalid if the session has no agent or the agent's character is a robot, and after Close.
func (s *Server) attach(session string, c *client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, registered := s.agents[session]
	if !registered || a.robot != "" || s.stopping {
		return errInvalid
	}
	s.closeCharacter(a.character, "replaced")
	a.character = c
	s.sockets[c] = true
	s.closing.Add(1)
	return nil
}

// referenceError is an error with the text that VCCP's reference server uses, and that clients may
// look for.
type referenceError string

func (e referenceError) Error() string { return string(e) }

// errInvalid is the error for a character that connects to a session without an agent, or to a
// session whose character is a robot.
const errInvalid = referenceError("Invalid session ID")

// detach removes a disconnected character from its agent.
func (s *Server) detach(session string, c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sockets, c)
	s.closing.Done()
	if a := s.agents[session]; a != nil && a.character == character(c) {
		a.character = nil
	}
}

// play makes the character of a session perform an action.
func (s *Server) play(ctx context.Context, session string, action message) error {
	c, registered := s.characterOf(session)
	if !registered {
		return errors.New("this session is not an agent yet; call register-agent first")
	}
	if c == nil || c.capability() == nil {
		return referenceError(fmt.Sprintf("Client for session %s is not connected", session))
	}
	return c.play(ctx, action)
}

// perceptions returns the response of get-perception for a session's character: a list of the latest
// perception of each category or, unless category is empty, only the latest perception of that
// category, which may be nil. It returns nil if the session has not registered as an agent.
func (s *Server) perceptions(session, category string) any {
	c, registered := s.characterOf(session)
	if !registered {
		return nil
	}
	latest := []message{}
	if c != nil {
		latest = append(latest, c.perceptions(time.Now())...)
	}
	if category == "" {
		return latest
	}
	i := slices.IndexFunc(latest, func(m message) bool { return m.Category == category })
	if i < 0 {
		return nil
	}
	return latest[i]
}
