// Package robot serves robots: their WebSocket or MQTT connection, from the handshake to the
// hang-up. A session holds one robot's conversation: it has speech recognized, has the agent
// answer, and speaks at the pace the firmware can play. Server is all that the rest of the
// appliance uses.
package robot

import (
	"perch/device"
	"perch/event"
)

// Server holds the sessions of all robots, and carries out what others want of robots. Each of the
// types it is made of knows only those below: links are MQTT connections, sessions open channels.
type Server struct{ *links }

// NewServer returns a server. Close ends it.
func NewServer(o Options) *Server { return &Server{newLinks(newSessions(newShared(o)))} }

// Apply changes what Options says may change. A turn under way goes on with what it began with;
// Hold of the options before is not called any more once Apply returns.
func (s *Server) Apply(o Options) {
	if s.apply(o) {
		s.phrases.reset()
	}
}

// Prepare makes the phrases that are not made yet, if somebody knows that a robot will come.
func (s *Server) Prepare() { s.phrases.Prepare() }

// Picture returns the last picture of a robot's camera.
func (s *Server) Picture(id device.ID) (device.Picture, bool) { return s.vision.Picture(id) }

// Status returns what a robot has last reported of itself, or false if it has not since the
// appliance started.
func (s *Server) Status(id device.ID) (event.RobotStatus, bool) { return s.statuses.lookup(id) }
