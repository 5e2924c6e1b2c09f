package main

import "time"

// How long it waits for networks.
const (
	// bootsWithin is from when the machine was switched on to the access point, where
	// no network comes.
	bootsWithin = time.Minute
	// settlesWithin is the same from the start of this program, for a slow machine's
	// networks, and after the access point was down for those that are known.
	settlesWithin = 45 * time.Second
	goneFor       = 10 * time.Minute // a network that was there
	// Each so often an access point that nobody uses lets the machine look for networks
	// that it knows: a router boots later than a Pi after a power cut.
	looksAfter = 5 * time.Minute
	unusedFor  = 3 * time.Minute
	looksSure  = 30 * time.Minute // somebody may look at the page for ever
)

// seen is what there is at a moment.
type seen struct {
	network bool      // one beside the access point
	raised  bool      // the access point is there: NetworkManager forgets it when it is updated
	radio   bool      // for one without wires
	talking bool      // somebody, with a robot
	known   bool      // there are networks without wires that it joins by itself
	used    time.Time // when somebody last looked at the page
	form    bool      // somebody has sent one
}

type act string

const (
	stay  act = ""
	raise act = "raise" // the access point
	lower act = "lower" // it
	join  act = "join"  // what the form names, with the access point down for it
)

// state is what there was before. Its zero is a machine without a network.
type state struct {
	up       bool      // the access point
	since    time.Time // when it was raised
	gone     time.Time // since when there is no network; zero is that there is one, or that nobody has looked
	patience time.Duration
}

// begins is the state of a machine that was switched on some time ago.
func begins(ago time.Duration) state { return state{patience: max(bootsWithin-ago, settlesWithin)} }

// step says what to do now.
func step(s state, now time.Time, is seen) (state, act) {
	if is.network {
		was := s.up
		s = state{patience: goneFor}
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
		return failed(now), lower // what is left of it
	case s.up && is.form:
		return state{}, join // if that fails, it is raised at once
	case s.up && is.known && !is.talking && (now.Sub(s.since) >= looksAfter && now.Sub(is.used) >= unusedFor || now.Sub(s.since) >= looksSure):
		return state{gone: now, patience: settlesWithin}, lower
	case s.up, is.talking, !is.radio, now.Sub(s.gone) < s.patience:
		return s, stay
	}
	s.up, s.since = true, now
	return s, raise
}

// failed is the state after an access point that could not be raised, or is no more.
func failed(now time.Time) state { return state{gone: now, patience: settlesWithin} }
