// Package robot serves robots: their WebSocket or MQTT connection, from the handshake to the hang-up.
//
// A session is one open channel of a robot, from its hello to the close. It passes the sound of the robot's
// microphone to a recognizer, asks the agent for a reply, and sends speech at the pace at which the firmware
// plays it. A turn is one exchange of a session: what starts the turn, such as an utterance or an announcement,
// and what the robot then says. A brain, such as a language model, writes the replies of the agent; engines
// recognize and synthesize speech. A stranger is a robot that no owner has adopted. A robot that is connected
// by MQTT and has no session is idle.
//
// The rest of the appliance reaches robots through Server.
package robot

import (
	"perch/device"
	"perch/event"
)

// Server holds the sessions of all robots, and carries out the commands that other parts of the
// appliance have for robots. It has three layers; each embeds the next and uses only the layers
// after it: links (MQTT connections), sessions (open channels) and shared (state of all sessions).
type Server struct{ *links }

// NewServer returns a server. Close stops it.
func NewServer(o Options) *Server { return &Server{newLinks(newSessions(newShared(o)))} }

// Apply replaces the options that may change while the server runs; see Options. A turn under way
// continues with the options that it began with. Once Apply returns, the earlier options' Hold is
// not called any more.
func (s *Server) Apply(o Options) {
	if s.apply(o) {
		s.phrases.reset()
	}
}

// Prepare synthesizes, in the background, the fixed phrases that are not stored yet as sound in the default
// voice. Each new connection and session does the same; a caller that expects a robot to connect may call
// Prepare before.
func (s *Server) Prepare() { s.phrases.Prepare() }

// Picture returns the latest picture from a robot's camera, or false if none is stored.
func (s *Server) Picture(id device.ID) (device.Picture, bool) { return s.vision.Picture(id) }

// Status returns the latest status that an adopted robot has reported since the server was made, or
// false if it has reported no status. Statuses of strangers are not stored.
func (s *Server) Status(id device.ID) (event.RobotStatus, bool) { return s.statuses.lookup(id) }
