package dialogue

import (
	"time"

	"perch/device/xiaozhi"
)

// micState is what the robot has sent of its microphone, and what comes from it.
type micState struct {
	mode          xiaozhi.Mode
	open          bool      // the robot has opened it, and has not closed it since
	everOpened    bool      // in this channel
	openedByFace  bool      // a face has opened the channel
	listening     bool      // we listen to it
	voiced        bool      // somebody has begun to speak, and has not ended
	resumesUntil  time.Time // until then the robot may say by itself that it listens again
	resumeAwaited time.Time // our speech ended in auto mode, and the robot has sent neither listen start nor stop since
	wokenAt       time.Time // by a wake word that has not been answered
	abortedAt     time.Time // by the robot, latest
	typedAt       time.Time // somebody last typed a text
	misheard      int       // utterances refused since the last that was understood

	utteranceBegan time.Time // the one under way
	packetAt       time.Time // the latest packet of it; zero before the first
	flow           flow      // of all packets
}

// packet records a packet with so much sound. A muted robot's belongs to no utterance.
func (m *micState) packet(now time.Time, d time.Duration, muted bool) {
	m.flow.add(now, d)
	if muted {
		return
	}
	if m.packetAt.IsZero() {
		m.utteranceBegan = now // the page may have asked for the microphone after the button was pushed
	}
	m.packetAt = now
}

// expectResume expects the robot's own listen start, which follows a tts stop. In push to talk
// it sends none, and in realtime its microphone is open.
func (m *micState) expectResume(now time.Time) {
	if m.mode != xiaozhi.Manual && m.mode != xiaozhi.Realtime {
		m.resumesUntil = now.Add(resumeWithin)
	}
}

// justAborted reports whether the robot has sent an abort a moment ago: a microphone that
// opens then is opened to speak.
func (m *micState) justAborted(now time.Time) bool { return !passed(now, m.abortedAt, unsolicitedFor) }

// stalled reports whether an utterance has had packets, and they have stopped.
func (m *micState) stalled(now time.Time) bool {
	return !m.packetAt.IsZero() && passed(now, m.packetAt, stalledAfter)
}

// isTyped reports whether a text was typed and did not wake the robot. Some clients mark it.
// Else a wake word comes first, or together with its sound.
func (m *micState) isTyped(now time.Time, d xiaozhi.ListenDetect) bool {
	return d.Typed || isWakeWord(d.Text) && m.everOpened && !m.flow.preRoll(now)
}

// isWakeWord reports whether words have woken a robot, and no other cause.
func isWakeWord(text string) bool {
	return text != "" && text != "face" && text != "head_pet_hold"
}

// flow is how a robot's sound arrives.
type flow struct {
	at    time.Time     // the latest packet
	since time.Time     // it has come without a gap
	ahead time.Duration // of sound that came sooner than it can have been spoken
}

// unbroken is the longest gap in the stream of an open microphone. A stream that was not
// announced is listened to after streamsFor.
const (
	unbroken   = 300 * time.Millisecond
	streamsFor = time.Second
)

// preRollAhead is how much too early stored sound comes: a robot sends 2 s at once.
const preRollAhead = 300 * time.Millisecond

// add records a packet with so much sound. What has come in a burst after a pause of the
// network is forgotten, a quarter of a second in a second.
func (f *flow) add(now time.Time, d time.Duration) {
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

// preRoll reports whether the latest sound was spoken before it was sent.
func (f *flow) preRoll(now time.Time) bool { return f.ahead-now.Sub(f.at) > preRollAhead }

// streams reports whether sound goes on in real time after our speech in auto mode without a
// listen start. Some clients send that before the first turn only.
func (m *micState) streams(now time.Time) bool {
	if m.resumeAwaited.IsZero() || m.flow.preRoll(now) {
		return false
	}
	from := m.flow.since
	if from.Before(m.resumeAwaited) {
		from = m.resumeAwaited
	}
	return passed(now, from, streamsFor)
}
