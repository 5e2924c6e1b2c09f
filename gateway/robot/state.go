package robot

import (
	"slices"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
)

// phase is where a session stands.
type phase int

const (
	greeting phase = iota // no hello yet
	quiet                 // the microphone is closed to us
	ready                 // we listen, and no one speaks yet
	hearing               // an utterance is being spoken
	thinking              // a turn is under way and has not spoken, or not for a while
	speaking              // a turn's speech is playing
	closing               // hung up
)

// state is all that decides what a session does next. It is a value: step makes
// the next one of it, and only the loop keeps it. What goes with each phase:
//
//	phase     turn        question     microphone   queue
//	greeting  none        none         never opened  only early commands
//	quiet     none        none         any           announcements
//	quiet     under way   waits        any           announcements
//	ready     none        none         listening     announcements
//	ready     under way   waits        any           announcements
//	hearing   under way   none, waits  any           announcements
//	thinking  under way   none, waits  any           announcements
//	speaking  under way   none, waits  any           announcements
//	closing   none        none         any           announcements
//
// Without a turn all of turnState is zero, and without a question all of
// questionState. A turn that is done and drained is over in the same step.
type state struct {
	phase    phase
	limits   limits
	greets   bool // wake words are answered
	channel  channelState
	mic      micState
	turn     turnState
	question questionState
	queue    queueState
}

// channelState is the robot's channel, from the upgrade to the hang-up.
type channelState struct {
	opened       time.Time
	greeted      time.Time // the first hello
	settled      bool      // the robot has left its connecting state: it can be made to speak
	sensing      bool      // it has sent an event: it would reopen a closed channel at once
	sentAt       time.Time // a message last left
	introducedAt time.Time // to the robot's tools; zero where it has none
	activeAt     time.Time // an utterance was last understood, or speech of ours ended: idle counts from then
	heldUntil    time.Time // the channel is not hung up before
	hangsUp      bool      // once the announcements that have waited are spoken
}

// micState is what the robot has sent of its microphone, and what comes from it.
type micState struct {
	mode          xiaozhi.Mode
	open          bool      // the robot has opened it, and has not closed it since
	everOpened    bool      // in this channel
	openedByFace  bool      // a face has opened the channel
	listening     bool      // we listen to it
	resumesUntil  time.Time // until then the robot may say by itself that it listens again
	resumeAwaited time.Time // our speech ended in auto mode, and the robot has sent neither listen start nor stop since
	wokenAt       time.Time // by a wake word that has not been answered
	abortedAt     time.Time // by the robot, latest
	typedAt       time.Time // a text that somebody typed was last taken
	misheard      int       // utterances refused since the last that was understood

	utteranceBegan time.Time // the one under way
	packetAt       time.Time // the latest packet of it; zero before the first
	flow           flow      // of all packets
}

// packet notes a packet of sound, without a step: there are seventeen a second.
func (m *micState) packet(now time.Time) {
	if m.packetAt.IsZero() {
		m.utteranceBegan = now // the page may have asked for the microphone after the button was pushed
	}
	m.packetAt = now
}

// turnState is the turn under way, and zero where there is none.
type turnState struct {
	active           bool
	announcement     announcement // what the turn speaks without being asked
	understood       bool         // the turn answers words that were understood
	begun            bool         // its first packet has left
	done             bool         // the agent has finished
	drained          bool         // all its speech has been played
	end, reason      string       // once done
	lastSpoken       string       // the latest sentence whose first packet has left
	unsolicitedUntil time.Time    // a microphone that opens before does not interrupt the announcement
	listensAfter     bool         // the microphone has opened, and is listened to after the turn
}

// questionState is the question that waits for an answer, and zero where none does.
type questionState struct {
	asked     *agent.Question
	audible   bool      // its first packet has left: it cannot be answered before
	published bool      // with event.Asked
	until     time.Time // it expires; zero until it was played
}

// waits reports whether a question waits for an answer.
func (q *questionState) waits() bool { return q.asked != nil }

// queueState is what waits.
type queueState struct {
	early       []input        // commands that came before hello
	waiting     []announcement // to be spoken, once no turn is under way
	yieldsUntil time.Time      // all of them let somebody who has interrupted speak until then
	openerUntil time.Time      // and those that can yield the person who has opened the channel; zero once that is over
}

// push, pushFront and remove change no slice that an earlier state has.
func (q *queueState) push(a announcement) { q.waiting = append(slices.Clip(q.waiting), a) }

func (q *queueState) pushFront(a announcement) {
	q.waiting = append([]announcement{a}, q.waiting...)
}

func (q *queueState) remove(which func(announcement) bool) (removed []announcement) {
	var kept []announcement
	for _, a := range q.waiting {
		if which(a) {
			removed = append(removed, a)
		} else {
			kept = append(kept, a)
		}
	}
	q.waiting = kept
	return removed
}

// limits are the times a session keeps.
type limits struct {
	hello   time.Duration // for the first message
	idle    time.Duration // without an utterance that is understood; 0 is for ever
	stalled time.Duration // packets that stop end an utterance
	longest time.Duration // utterance
}

// Times that are the same for every robot.
const (
	// settleAfter is how long after its hello a robot that sends nothing more is
	// taken to have left its connecting state, in which it cannot speak.
	settleAfter = 2 * time.Second
	// listenAfter is how long after a wake word the microphone may take to open.
	listenAfter = 500 * time.Millisecond
	// feedEvery keeps the robot's clock of 120 s from running out.
	feedEvery = time.Minute
	// resumeWithin is when the robot's own listen start follows tts stop, at the
	// latest.
	resumeWithin = 2 * time.Second
	// unsolicitedFor is how long after an announcement has begun a microphone may open
	// that does not interrupt it: the face that is greeted also opens the microphone.
	unsolicitedFor = 2 * time.Second
	// holdMargin is how much longer a channel is held than was asked: what it is
	// held for happens at that time, and then has to be spoken.
	holdMargin = 30 * time.Second
	// yieldFor is how long a person has to begin to speak after the microphone has
	// opened by an interruption or with the channel.
	yieldFor = 3 * time.Second
	// introduceEvery is how often the robot is given a new token for its camera.
	introduceEvery = 30 * time.Minute
)

// mostQueued bounds the announcements that wait for a turn to end: those from the
// closed channel, and as many more. mostEarly bounds commands before hello.
const (
	mostQueued = 2 * mostWaiting
	mostEarly  = mostWaiting
)

// announcement is spoken without being asked. One of the first four is set.
type announcement struct {
	text     string
	phrase   string    // of the phrasebook, instead of a text
	sound    *sound    // instead of a text
	question *inquiry  // instead of a text
	notice   string    // its id, where it is a notification
	command  string    // the id of a command that waited for the channel to open
	expires  time.Time // when that is not worth saying any more
	urgent   bool      // it waits for no other
	hint     bool      // how to wake the robot is shown after it
}

// canYield reports whether a turn of the person who opened the channel may precede
// it.
func (t announcement) canYield() bool { return (t.notice != "" || t.command != "") && !t.urgent }

// isSpeech reports whether it is spoken, and spoken again where it did not sound.
func (t announcement) isSpeech() bool { return t.text != "" || t.question != nil }
