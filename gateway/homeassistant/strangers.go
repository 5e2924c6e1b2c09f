package homeassistant

import (
	"maps"
	"time"

	"golang.org/x/time/rate"

	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/discovery"
)

// countEvery is how often the number of strangers is published. Any machine in the
// network can invent some.
const countEvery = time.Second

// strangers are the robots that were not adopted by name. They are a number here,
// not devices, and an event for each that comes.
type strangers struct {
	here    map[device.ID]bool
	noted   map[device.ID]bool // of those here, that they came
	pace    *rate.Limiter      // of publishing that
	shown   int
	changed time.Time // when shown last did
	due     time.Time // when it is to be published; zero is not
}

// are takes over which there are.
func (s *strangers) are(here map[device.ID]bool) {
	s.here = here
	maps.DeleteFunc(s.noted, func(id device.ID, _ bool) bool { return !here[id] })
}

// count is the number as it is to be published now. A change within a second is
// published at the end of that.
func (s *strangers) count(now time.Time) int {
	n := len(s.here)
	switch {
	case n == s.shown:
		s.due = time.Time{}
	case now.Sub(s.changed) >= countEvery:
		s.shown, s.changed, s.due = n, now, time.Time{}
	default:
		s.due = s.changed.Add(countEvery)
	}
	return s.shown
}

// newcomer is a stranger's event.
type newcomer struct {
	Type    string    `json:"event_type"`
	Robot   device.ID `json:"robot"`
	MAC     string    `json:"mac"`
	Address string    `json:"address"`
	Board   string    `json:"board"`
	Adopt   string    `json:"adopt"` // the command
}

// came publishes that a stranger has checked in, once, and not of more than
// anybody would read.
func (h *hub) came(e event.Envelope) {
	seen, came := e.Event.(event.RobotSeen)
	if !came || h.strangers.noted[e.Robot] {
		return
	}
	h.strangers.noted[e.Robot], h.strangers.here[e.Robot] = true, true
	h.bridge()
	if !h.strangers.pace.AllowN(e.At, 1) {
		return
	}
	n := newcomer{Type: "came", Robot: e.Robot, MAC: e.Robot.MAC(), Address: discovery.OneLine(seen.Address), Board: discovery.OneLine(seen.Board),
		Adopt: "perch robot adopt " + string(e.Robot)}
	if seen.Waiting {
		n.Type = "waits"
	}
	h.putJSON(h.names.Bridge("robot"), n, false, 1)
}

// bridgeInfo is what an appliance publishes of itself under its base topic.
type bridgeInfo struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Robots  int    `json:"robots"` // with an open channel
	// Strangers are the robots that were not adopted by name.
	Strangers int       `json:"strangers"`
	Waiting   int       `json:"waiting"` // agents without a robot that wait for a person
	Started   time.Time `json:"started"`
	Host      string    `json:"host"`            // on the network, "perch.local"; empty while it has none
	Taken     string    `json:"taken,omitempty"` // the name it was to have, which another machine has
}
