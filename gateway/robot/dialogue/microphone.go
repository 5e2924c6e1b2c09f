package dialogue

import (
	"time"

	"perch/device/xiaozhi"
)

// micState is the state of the robot's microphone and of its sound.
type micState struct {
	mode          xiaozhi.Mode
	open          bool      // the robot has sent listen start, and no listen stop since
	everOpened    bool      // the robot has sent a listen start on this channel
	openedByFace  bool      // the robot has opened the channel because it detected a face
	listening     bool      // the appliance listens to the sound
	voiced        bool      // the end-pointer has found the beginning of speech, and not its end yet
	resumesUntil  time.Time // until then, a listen start counts as the robot's reaction to tts stop, and not as a person's
	resumeAwaited time.Time // when speech ended in auto mode; zero once the robot has sent listen start or stop
	wokenAt       time.Time // when a wake word came that is not answered yet; zero if there is no such wake word
	abortedAt     time.Time // when the robot last sent abort
	typedAt       time.Time // when somebody last typed a text
	misheard      int       // number of utterances that were not understood since the latest that was understood
	excused       bool      // one of these was not silence, so that the robot has said that it did not understand

	utteranceBegan time.Time // beginning of the utterance under way
	packetAt       time.Time // time of the latest packet that was not muted; zero before the first packet of a manual utterance
	flow           flow      // timing of all packets
}

// recordPacket records the arrival of a packet that holds d of sound. A muted robot's packet belongs to no
// utterance.
func (m *micState) recordPacket(now time.Time, d time.Duration, muted bool) {
	m.flow.add(now, d)
	if muted {
		return
	}
	if m.packetAt.IsZero() {
		m.utteranceBegan = now // not when the button was pressed, because a web page may have to ask its user for the microphone first
	}
	m.packetAt = now
}

// expectResume records that a tts stop was sent, after which a robot in auto mode sends a listen start without
// an action of a person. In manual mode the robot sends no listen start, and in realtime mode its microphone
// stays open.
func (m *micState) expectResume(now time.Time) {
	if m.mode != xiaozhi.Manual && m.mode != xiaozhi.Realtime {
		m.resumesUntil = now.Add(resumeWithin)
	}
}

// hasJustAborted reports whether the robot has sent abort less than unsolicitedFor ago. If its microphone
// opens then, somebody wants to speak.
func (m *micState) hasJustAborted(now time.Time) bool {
	return !hasPassed(now, m.abortedAt, unsolicitedFor)
}

// hasStalled reports whether the packets of an utterance have stopped arriving.
func (m *micState) hasStalled(now time.Time) bool {
	return !m.packetAt.IsZero() && hasPassed(now, m.packetAt, stallTimeout)
}

// isTyped reports whether the text of a listen detect was typed, and is not the wake word. Some programs
// that act as a robot mark typed text. Without a mark, a wake word is recognized by its time: it comes
// before the microphone opens, or together with stored sound.
func (m *micState) isTyped(now time.Time, d xiaozhi.ListenDetect) bool {
	return d.Typed || isWakeWord(d.Text) && m.everOpened && !m.flow.isPreRoll(now)
}

// isWakeWord reports whether the reason for waking is a word, and not a face or a touch.
func isWakeWord(text string) bool {
	return text != "" && text != "face" && text != "head_pet_hold"
}

// flow is the timing of a robot's packets.
type flow struct {
	at    time.Time     // time of the latest packet
	since time.Time     // since when packets have come without a gap
	ahead time.Duration // how much more sound has arrived than can have been spoken in the same time
}

// Limits of a flow.
const (
	// maxGap is the longest gap between packets in the stream of an open microphone.
	maxGap = 300 * time.Millisecond
	// streamFor is how long a stream must last before the appliance listens to it without a listen start.
	streamFor = time.Second
	// preRollAhead is the value of flow.ahead above which packets hold stored sound: after a wake word a
	// robot sends the latest 2 s at once.
	preRollAhead = 300 * time.Millisecond
)

// add records a packet that holds d of sound. A burst after a pause of the network also makes ahead grow,
// so ahead shrinks by a quarter of a second in each second of sound that arrives in real time.
func (f *flow) add(now time.Time, d time.Duration) {
	gap := now.Sub(f.at)
	if gap > maxGap {
		f.since = now
	}
	if gap < time.Minute {
		f.ahead = max(0, f.ahead-gap*5/4)
	} else {
		f.ahead = 0
	}
	f.at, f.ahead = now, f.ahead+d
}

// isPreRoll reports whether the latest packet holds stored sound, spoken some time before it was sent.
func (f *flow) isPreRoll(now time.Time) bool { return f.ahead-now.Sub(f.at) > preRollAhead }

// isStreaming reports whether sound still arrives in real time after the robot has spoken in auto mode,
// although no listen start has come. Some programs that act as a robot send listen start before the first
// turn only.
func (m *micState) isStreaming(now time.Time) bool {
	if m.resumeAwaited.IsZero() || m.flow.isPreRoll(now) {
		return false
	}
	from := m.flow.since
	if from.Before(m.resumeAwaited) {
		from = m.resumeAwaited
	}
	return hasPassed(now, from, streamFor)
}
