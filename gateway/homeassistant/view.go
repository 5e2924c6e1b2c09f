package homeassistant

import (
	"crypto/sha256"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/homeassistant/discovery"
)

// view is one robot as it is mirrored.
type view struct {
	robot device.Robot
	rendering
	channel
	character
	senses discovery.Senses

	// What is known of it; nil is unknown.

	mute      bool
	face      *bool
	identity  *string
	lastHeard *string
	led       *light
	readings  readings
	pressed   time.Time // since when a hand is on its head; zero is not
	held      bool      // for long

	download   download
	installing bool // it was sent the command, and installs when it next checks in

	card      discovery.Card    // its discovery was last made of; without an ID it is not announced
	announced [sha256.Size]byte // of its discovery, as it was last published
	tools     []device.Tool     // which that was made of
	status    string            // its availability, likewise
	looked    int               // the look that found it in the registry
	transport device.Transport  // of robots without their own
}

// rendering is an agent's state, and the document that was made of it.
type rendering struct {
	state     agent.State
	shown     agent.Shown // as it was last published
	seen      time.Time   // of its latest event
	dirty     bool        // the document is no longer what was published
	published time.Time
}

// channel is what a robot has done since its channel opened.
type channel struct {
	listed    bool // its tools
	woken     bool // it has listened
	usedTools bool // in the turn under way
}

// online reports whether the robot counts as there: it opens its channel only
// to talk, so one that is quiet is not gone. One whose MQTT connection has ended is.
func (v *view) online(now time.Time, away time.Duration) bool {
	return v.state.Online || !v.state.Gone && (away == 0 || now.Before(v.lastSeen().Add(away)))
}

func (v *view) lastSeen() time.Time {
	if v.robot.LastSeen.After(v.seen) {
		return v.robot.LastSeen
	}
	return v.seen
}

// due is when the view changes by itself, and the zero time when it does not.
func (v *view) due(away time.Duration) time.Time {
	first := earliest(v.download.until, v.character.due())
	if v.dirty {
		first = earliest(first, v.published.Add(coalesce))
	}
	if !v.pressed.IsZero() && !v.held {
		first = earliest(first, v.pressed.Add(longPress))
	}
	if away > 0 && !v.state.Online && v.status == "online" {
		first = earliest(first, v.lastSeen().Add(away))
	}
	return first
}

// take brings in what was read from the robot, and reports whether it has a sense
// that was unknown.
func (v *view) take(r readings) (news bool) {
	if r.HeadYaw == nil && r.HeadPitch == nil { // unreported: where it was turned to is what is known
		r.HeadYaw, r.HeadPitch = v.readings.HeadYaw, v.readings.HeadPitch
	}
	v.readings, v.dirty = r, true
	for sense, there := range map[string]bool{
		"battery": r.Battery != nil, "charging": r.Charging != nil, "signal": r.Signal != nil, "temperature": r.Temperature != nil,
	} {
		news = there && v.senses.Add(sense) || news
	}
	return news
}
