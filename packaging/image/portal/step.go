package main

import "time"

// Durations of waiting for networks.
const (
	// bootsWithin is the time from switching the machine on to the access point, if no
	// network appears.
	bootsWithin = time.Minute
	// settlesWithin is the same from the start of this program, for the networks of a slow
	// machine, and from lowering the access point, for known networks.
	settlesWithin = 45 * time.Second
	goneFor       = 10 * time.Minute // a network that existed before
	// After this time an unused access point is lowered so that the machine can look for
	// known networks: after a power cut a router boots later than a Pi.
	looksAfter = 5 * time.Minute
	unusedFor  = 3 * time.Minute
	looksSure  = 30 * time.Minute // even if the page is used
)

// observation is the result of a check.
type observation struct {
	network bool      // other than the access point
	raised  bool      // the access point exists; an update of NetworkManager removes it
	radio   bool      // a radio exists
	talking bool      // somebody talks with a robot
	known   bool      // there are Wi-Fi networks that it would join by itself
	used    time.Time // last visit of the page
	form    bool      // a form was submitted
}

type act string

const (
	stay  act = ""
	raise act = "raise" // open the access point
	lower act = "lower" // remove it
	join  act = "join"  // join the form's network, with the access point down
)

// state is what is remembered between checks. The zero state is a machine without a network.
type state struct {
	up      bool      // the access point is up
	since   time.Time // when it was opened
	gone    time.Time // start of the time without a network; zero if there is one, or before the first check
	waitFor time.Duration
}

// initialState returns the state of a machine that was switched on ago.
func initialState(ago time.Duration) state {
	return state{waitFor: max(bootsWithin-ago, settlesWithin)}
}

// step returns the next state and the action.
func step(s state, now time.Time, is observation) (state, act) {
	if is.network {
		was := s.up
		s = state{waitFor: goneFor}
		if was {
			return s, lower
		}
		return s, stay
	}
	if s.gone.IsZero() {
		s.gone = now
	}
	switch {
	case s.up && !is.raised:
		return stateAfterFailure(now), lower // removes what is left of it
	case s.up && is.form:
		return state{}, join // if that fails, it is opened again at once
	case s.up && is.known && !is.talking && (now.Sub(s.since) >= looksAfter && now.Sub(is.used) >= unusedFor || now.Sub(s.since) >= looksSure):
		return state{gone: now, waitFor: settlesWithin}, lower
	case s.up, is.talking, !is.radio, now.Sub(s.gone) < s.waitFor:
		return s, stay
	}
	s.up, s.since = true, now
	return s, raise
}

// stateAfterFailure returns the state after an access point could not be opened, or vanished.
func stateAfterFailure(now time.Time) state { return state{gone: now, waitFor: settlesWithin} }
