package dialogue

import (
	"slices"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
)

// phase is the stage that a session is in.
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

// State is everything that decides what a session does next. It is a value: Step returns the
// next one, and nothing else changes it. Phases and the rest of the state go together:
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
// Without a turn all of turnState is zero, and without a question all of questionState. A turn
// that is done and drained is over in the same step.
type State struct {
	phase    phase
	settings Settings
	longest  time.Duration // utterance
	channel  channelState
	mic      micState
	turn     turnState
	question questionState
	queue    queueState
}

// Settings are what an owner can change while a channel is open.
type Settings struct {
	Greet bool          // wake words are answered
	Idle  time.Duration // without an utterance that is understood, until we hang up; 0 is never
}

// New returns the state of a channel that was opened at a time. No utterance is longer than
// longest.
func New(opened time.Time, longest time.Duration, s Settings) State {
	return State{settings: s, longest: longest, channel: channelState{opened: opened}}
}

// Input is something that can happen to a session. The set is closed.
type Input interface{ step(s *stepper) }

// Effect is what a session does because of an input: one of the types from Send to AnswerPlay. A
// session carries effects out in their order, and waits for none.
type Effect any

// stepper collects the effects of one step.
type stepper struct {
	State
	now     time.Time
	effects []Effect
}

// channelState is the robot's channel, from the upgrade to the hang-up.
type channelState struct {
	opened       time.Time
	greeted      time.Time // the first hello
	settled      bool      // the robot has left its connecting state: it can be made to speak
	sensing      bool      // it has sent an event: it would reopen a closed channel at once
	sentAt       time.Time // a message last left
	introducedAt time.Time // to the robot's tools; zero if it has none
	activeAt     time.Time // an utterance was last understood, or speech of ours ended: idle counts from then
	heldUntil    time.Time // the channel is not hung up before
	hangsUp      bool      // once the announcements that have waited are spoken
}

// turnState is the turn under way, and zero without one.
type turnState struct {
	active           bool
	announcement     Announcement // what the turn speaks without being asked
	understood       bool         // the turn answers words that were understood
	begun            bool         // its first packet has left
	done             bool         // the agent has finished
	drained          bool         // all its speech has been played
	end, reason      string       // once done
	lastSpoken       string       // the latest sentence whose first packet has left
	unsolicitedUntil time.Time    // a microphone that opens before does not interrupt the announcement
	listensAfter     bool         // the microphone has opened, and is listened to after the turn
}

// questionState is the question that waits for an answer, and zero without one.
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
	early       []Input        // commands that came before hello
	waiting     []Announcement // to be spoken, once no turn is under way
	yieldsUntil time.Time      // all of them let somebody who has interrupted speak until then
	openerUntil time.Time      // and some the person who has opened the channel; zero once that is over
}

// push, pushFront and remove change no slice that an earlier state has.
func (q *queueState) push(a Announcement) { q.waiting = append(slices.Clip(q.waiting), a) }

func (q *queueState) pushFront(a Announcement) {
	q.waiting = append([]Announcement{a}, q.waiting...)
}

func (q *queueState) remove(which func(Announcement) bool) (removed []Announcement) {
	var left []Announcement
	for _, a := range q.waiting {
		if which(a) {
			removed = append(removed, a)
		} else {
			left = append(left, a)
		}
	}
	q.waiting = left
	return removed
}

// speakableFrom returns when an announcement may begin without talking over people.
func (q *queueState) speakableFrom(a Announcement) time.Time {
	if a.canYield() && q.openerUntil.After(q.yieldsUntil) {
		return q.openerUntil
	}
	return q.yieldsUntil
}

// Announcement is spoken without being asked. One of the first four fields is set.
type Announcement struct {
	Text     string
	Phrase   string    // the name of a phrase, instead of a text
	Sound    *Sound    // instead of a text
	Question *Question // instead of a text
	Notice   string    // the id of a notification; empty for anything else
	Command  string    // the id of a command that waited for the channel to open
	Expires  time.Time // after which it is not spoken any more
	Urgent   bool      // it waits for no other
	Hint     bool      // how to wake the robot is shown after it
}

// canYield reports whether a turn of the person who opened the channel may precede it.
func (a Announcement) canYield() bool { return (a.Notice != "" || a.Command != "") && !a.Urgent }

// isSpeech reports whether it is spoken, and spoken again if it was not heard.
func (a Announcement) isSpeech() bool { return a.Text != "" || a.Question != nil }

// Sound is what a robot plays instead of speech.
type Sound struct {
	Name string
	PCM  []int16 // 24 kHz
}

// Question is a question that the appliance asks the people near a robot. Each is one value:
// it is compared by its address.
type Question struct {
	agent.Question
	Ended chan Ending // has a slot for one
}

// Ending is how a Question ended: by an answer, or an error.
type Ending struct {
	Answer agent.Answer
	Err    error
}

// expired reports whether the time for an answer is over.
func (q *Question) expired(now time.Time) bool { return !now.Before(q.Until) }

// PhraseAwake is the name of the phrase that answers a wake word.
const PhraseAwake = "awake"

// CommandSay is what event.Command calls a sentence to be spoken.
const CommandSay = "say"

// ReasonExpired is why a command is rejected that has waited too long.
const ReasonExpired = "it has waited too long"

// MaxStored bounds the sentences that wait for a robot's channel to open. mostQueued bounds
// the announcements that wait for a turn to end: those from the closed channel, and as many
// more. mostEarly bounds commands before hello.
const (
	MaxStored  = 40
	mostQueued = 2 * MaxStored
	mostEarly  = MaxStored
)

// Times that are the same for every robot.
const (
	// helloWithin is how long the first message may take.
	helloWithin = 10 * time.Second
	// stalledAfter is how long after its last packet an utterance is over.
	stalledAfter = 1200 * time.Millisecond
	// settleAfter is how long after its hello a robot that sends nothing more is assumed to have
	// left its connecting state, where it cannot speak.
	settleAfter = 2 * time.Second
	// listenAfter is how long after a wake word the microphone may take to open.
	listenAfter = 500 * time.Millisecond
	// feedEvery keeps the robot's clock of 120 s from running out.
	feedEvery = time.Minute
	// resumeWithin is when the robot's own listen start follows tts stop, at the latest.
	resumeWithin = 2 * time.Second
	// unsolicitedFor is how long after an announcement has begun a microphone may open without
	// interrupting it: the face that is greeted also opens the microphone.
	unsolicitedFor = 2 * time.Second
	// holdMargin is how much longer a channel is held than was asked: what it is held for
	// happens at that time, and then has to be spoken.
	holdMargin = 30 * time.Second
	// yieldFor is how long a person has to begin to speak after the microphone has opened by an
	// interruption or with the channel.
	yieldFor = 3 * time.Second
	// IntroduceEvery is how often the robot is given a new token for its camera.
	IntroduceEvery = 30 * time.Minute
	// typedEvery is the shortest time between two texts that a person types.
	typedEvery = 500 * time.Millisecond
)

func passed(now, from time.Time, d time.Duration) bool { return !now.Before(from.Add(d)) }

// Closed reports whether the channel was hung up. Nothing more happens then.
func (s *State) Closed() bool { return s.phase == closing }

// Mode returns how the robot listens.
func (s *State) Mode() xiaozhi.Mode { return s.mic.mode }

// Hearing reports whether an utterance is being spoken.
func (s *State) Hearing() bool { return s.phase == hearing }

// Asking reports whether a question waits for an answer.
func (s *State) Asking() bool { return s.question.waits() }

// Unspoken returns the sentences that were still to be spoken and are stored nowhere else.
func (s *State) Unspoken() (texts []string) {
	for _, a := range s.queue.waiting {
		if a.Notice == "" && a.Command == "" && a.Text != "" {
			texts = append(texts, a.Text)
		}
	}
	return texts
}

// FindsSpeech reports whether the end-pointer is to find utterances: in manual mode the button
// does, and outside realtime we do not listen while we speak.
func (s *State) FindsSpeech() bool {
	switch s.mic.mode {
	case xiaozhi.Manual:
		return false
	case xiaozhi.Realtime:
		return s.mic.listening && s.phase > quiet && s.phase < closing
	}
	return s.phase == ready || s.phase == hearing
}

// interruptible reports whether words stop the turn. They do not while a question waits or
// words are recognized: a person who goes on means the same.
func (s *State) interruptible() bool {
	if s.mic.mode != xiaozhi.Realtime || !s.mic.listening || !s.turn.active || s.question.waits() {
		return false
	}
	return s.phase == speaking || s.phase == thinking && s.turn.understood
}

// unsolicited reports whether an announcement has just begun, without interruption.
func (s *State) unsolicited(now time.Time) bool {
	return now.Before(s.turn.unsolicitedUntil) && !s.mic.justAborted(now)
}

// requeue puts an announcement back that has not begun to sound.
func (s *State) requeue() {
	if !s.turn.begun && !s.question.published && s.turn.announcement.isSpeech() {
		s.turn.announcement.Urgent = false // the person who has interrupted it speaks first
		s.queue.pushFront(s.turn.announcement)
		s.turn.announcement = Announcement{}
	}
}

// openMicrophone listens to a microphone that has opened during an announcement.
func (s *State) openMicrophone() {
	s.mic.listening, s.turn.listensAfter = s.mic.listening || s.turn.listensAfter, false
}

// yieldToOpener lets a person speak before announcements if the microphone opens by an
// interruption or for the first time. A face does not speak.
func (s *State) yieldToOpener(now time.Time) {
	until := now.Add(yieldFor)
	if now.Before(s.queue.yieldsUntil) {
		s.queue.yieldsUntil = until
	}
	switch {
	case s.mic.everOpened && !now.Before(s.queue.openerUntil): // it is open already
	case s.mic.openedByFace:
		s.queue.openerUntil = time.Time{}
	default:
		s.queue.openerUntil = until
	}
}

// openerHadTurn ends the time for the person who opened the channel. After a greeting or a
// turn that was not understood it begins again.
func (s *State) openerHadTurn(now time.Time) {
	switch {
	case s.turn.understood:
		s.queue.openerUntil = time.Time{}
	case !s.queue.openerUntil.IsZero() && s.mic.everOpened && s.mic.misheard <= 1:
		s.queue.openerUntil = now.Add(yieldFor)
	}
}

// idleAt returns when an idle channel is hung up; the zero time is never. A robot that sends
// events would open its channel again at once.
func (s *State) idleAt() time.Time {
	if s.settings.Idle == 0 || s.turn.active || s.channel.sensing || s.phase == greeting || s.phase == closing {
		return time.Time{}
	}
	at := s.channel.activeAt.Add(s.settings.Idle)
	if until := s.channel.heldUntil.Add(holdMargin); !s.channel.heldUntil.IsZero() && at.Before(until) {
		return until
	}
	return at
}
