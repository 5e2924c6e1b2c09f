package robot

import "time"

// flow is how a robot's sound comes in. The loop sets it for each packet,
// without a step.
type flow struct {
	at    time.Time     // the latest packet
	since time.Time     // it has come without a gap
	ahead time.Duration // of sound that came sooner than it can have been spoken
}

// unbroken is what may be between two packets of a microphone that is open.
// streamsFor is how long one sends that was not announced to be open before it is
// listened to.
const (
	unbroken   = 300 * time.Millisecond
	streamsFor = time.Second
)

// preRollAhead is how far ahead of time sound is that was kept from before: a
// robot sends two seconds of it at once.
const preRollAhead = 300 * time.Millisecond

// take notes a packet of so much sound. What has come in a burst after a pause
// of the network is forgotten, a quarter of a second in a second.
func (f *flow) take(now time.Time, d time.Duration) {
	gap := now.Sub(f.at)
	if gap > unbroken {
		f.since = now
	}
	if gap < time.Minute {
		f.ahead = max(0, f.ahead-gap*5/4)
	} else {
		f.ahead = 0
	}
	f.at, f.ahead = now, f.ahead+d
}

// preRoll reports whether what came just now is sound of before.
func (f *flow) preRoll(now time.Time) bool { return f.ahead-now.Sub(f.at) > preRollAhead }

// streams reports whether sound goes on in real time without a listen start since
// our speech in auto mode ended. The firmware sends one then; some clients send one
// at the first turn only.
func (s *state) streams(now time.Time) bool {
	if s.phase != quiet || s.mic.resumeAwaited.IsZero() || s.mic.flow.preRoll(now) {
		return false
	}
	from := s.mic.flow.since
	if from.Before(s.mic.resumeAwaited) {
		from = s.mic.resumeAwaited
	}
	return passed(now, from, streamsFor)
}

// step listens to the sound that streams has found.
func (streaming) step(s *stepper) {
	if s.phase == quiet && !s.mic.resumeAwaited.IsZero() {
		s.mic.resumeAwaited, s.mic.listening = time.Time{}, true
		s.again()
	}
}
