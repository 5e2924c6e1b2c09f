package robot

import "time"

// flow is how a robot's sound comes in. The loop sets it for each packet,
// without a step.
type flow struct {
	at    time.Time     // the latest packet
	ahead time.Duration // of sound that came sooner than it can have been spoken
}

// preRollAhead is how far ahead of time sound is that was kept from before: a
// robot sends two seconds of it at once.
const preRollAhead = 300 * time.Millisecond

// take notes a packet of so much sound. What has come in a burst after a pause
// of the network is forgotten, a quarter of a second in a second.
func (f *flow) take(now time.Time, d time.Duration) {
	if gap := now.Sub(f.at); gap < time.Minute {
		f.ahead = max(0, f.ahead-gap*5/4)
	} else {
		f.ahead = 0
	}
	f.at, f.ahead = now, f.ahead+d
}

// preRoll reports whether what came just now is sound of before.
func (f *flow) preRoll(now time.Time) bool { return f.ahead-now.Sub(f.at) > preRollAhead }
