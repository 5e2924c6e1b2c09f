package main

import "time"

// Times to wait for a network before the access point is opened.
const (
	// bootWait is measured from the start of the machine.
	bootWait = time.Minute
	// settleWait is the minimum wait from the start of this program, for machines that start
	// slowly. It is also the wait after the access point was closed or could not be opened.
	settleWait = 45 * time.Second
	// lostWait is measured from the loss of the network.
	lostWait = 10 * time.Minute
)

// The access point is closed from time to time, so that the machine can search for its saved
// networks: after a power cut a router needs longer to start than a Raspberry Pi.
const (
	searchAfter    = 5 * time.Minute  // minimum time that the access point stays open
	minUnused      = 3 * time.Minute  // minimum time since the last visit of the page
	searchAtLatest = 30 * time.Minute // time after which the access point is closed even if the page is in use
)

// observation is the result of a check.
type observation struct {
	network bool      // the machine is connected to a network
	raised  bool      // the access point exists (an update of NetworkManager can remove it)
	radio   bool      // the machine has a radio
	talking bool      // a conversation with a robot is under way
	saved   bool      // there are saved networks that the machine joins automatically
	used    time.Time // last visit of the page
	form    bool      // a form was submitted
}

// action is what the portal does after a check.
type action string

// The actions.
const (
	stay  action = ""      // change nothing
	raise action = "raise" // open the access point
	lower action = "lower" // close the access point
	join  action = "join"  // close the access point and join the network in the form
)

// state is the state between checks. With the zero state the access point is opened at the next
// check without a network.
type state struct {
	up           bool          // the access point is open
	raisedAt     time.Time     // time at which the access point was opened
	offlineSince time.Time     // start of the time without a network; zero with a network, and before the first check
	waitFor      time.Duration // time to wait for a network, from offlineSince
}

// initialState returns the state at the start of this program. uptime is the time since the
// start of the machine.
func initialState(uptime time.Duration) state {
	return state{waitFor: max(bootWait-uptime, settleWait)}
}

// step returns the state after an observation, and the action to take.
func step(s state, now time.Time, o observation) (state, action) {
	if o.network {
		wasUp := s.up
		s = state{waitFor: lostWait}
		if wasUp {
			return s, lower
		}
		return s, stay
	}
	if s.offlineSince.IsZero() {
		s.offlineSince = now
	}
	switch {
	case s.up && !o.raised:
		return stateAfterFailure(now), lower // lower also removes a leftover connection
	case s.up && o.form:
		return state{}, join // if joining fails, the zero state opens the access point again at once
	case s.up && o.saved && !o.talking && (now.Sub(s.raisedAt) >= searchAfter && now.Sub(o.used) >= minUnused || now.Sub(s.raisedAt) >= searchAtLatest):
		return state{offlineSince: now, waitFor: settleWait}, lower
	case s.up, o.talking, !o.radio, now.Sub(s.offlineSince) < s.waitFor:
		return s, stay
	}
	s.up, s.raisedAt = true, now
	return s, raise
}

// stateAfterFailure returns the state after the access point could not be opened, or has
// disappeared.
func stateAfterFailure(now time.Time) state { return state{offlineSince: now, waitFor: settleWait} }
