package dialogue

import (
	"context"
	"slices"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
)

// phase is the phase of a session.
type phase int

// Phases.
const (
	greeting phase = iota // the robot has not sent its hello
	quiet                 // the appliance does not listen to the microphone, and the robot does not speak
	ready                 // the appliance listens, and nobody speaks yet
	hearing               // somebody speaks an utterance
	thinking              // a turn is under way, and the robot is silent
	speaking              // the robot plays a turn's speech
	closing               // the channel is closed
)

// State is the state of a session's dialogue. It is a value: Step returns the next one, and nothing else
// changes it. These combinations of its parts are possible:
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
// Without a turn turnState is zero, and without a question questionState is zero. When a turn becomes both
// done and drained, the same step ends it.
type State struct {
	phase        phase
	settings     Settings
	maxUtterance time.Duration
	channel      channelState
	mic          micState
	turn         turnState
	question     questionState
	queue        queueState
	music        musicState
}

// Settings are the settings that an owner can change while a channel is open.
type Settings struct {
	Greet bool          // whether a wake word is answered with a phrase
	Idle  time.Duration // idle time (see activeAt) after which the channel is closed; 0 means never
	// Standing keeps the channel open until the robot first opens its microphone: such a robot is connected so
	// that Perch can speak through it, and not for a talk.
	Standing bool
}

// New returns the state of a channel that was opened at a time. Utterances end after maxUtterance at
// the latest.
func New(opened time.Time, maxUtterance time.Duration, s Settings) State {
	return State{settings: s, maxUtterance: maxUtterance, channel: channelState{opened: opened}}
}

// Input is an event that a session reports to the dialogue. Only types of this package implement it.
type Input interface{ step(s *stepper) }

// Effect is an action that a session carries out after an input: one of the types from Send to
// AnswerPlay. A session carries effects out in order, and none of them blocks.
type Effect any

// stepper is the state during one step, and the effects so far.
type stepper struct {
	State
	now     time.Time
	effects []Effect
}

// channelState is the state of the robot's channel.
type channelState struct {
	opened       time.Time
	greeted      time.Time // when the first hello came; zero before
	settled      bool      // the robot has left its connecting state, where it refuses to speak
	sensing      bool      // the robot has sent a sensor event; such a robot opens a closed channel again at once
	sentAt       time.Time // when the latest message was sent
	introducedAt time.Time // when the latest Introduce was emitted; zero if the robot has no MCP server
	// activeAt is the beginning of the idle time: the latest hello, opening of the microphone for a person,
	// understood words, interruption, end of the appliance's question, or end of speech. The end of speech
	// does not count after a misheard utterance, unless the speech was an announcement with a text.
	activeAt time.Time

	heldUntil time.Time // until when HoldChannel holds the channel, without holdMargin
	hangsUp   bool      // the channel closes once the waiting notices and stored commands that are not urgent are spoken
}

// turnState is the turn under way. It is zero while there is no turn.
type turnState struct {
	active           bool
	announcement     Announcement // announcement that the turn speaks; zero if the turn answers somebody
	understood       bool         // the turn answers words that were understood
	begun            bool         // the first packet of sound was sent
	done             bool         // the turn has queued all its speech; see TurnFinished
	drained          bool         // the robot has played all speech
	end, reason      string       // how the turn ended, and why it failed; set once done
	lastSpoken       string       // latest sentence that the robot has begun to play
	unsolicitedUntil time.Time    // until then, the opening of the microphone does not interrupt the announcement
	listensAfter     bool         // the microphone has opened during the turn; the appliance listens after the turn
}

// questionState is the question that waits for an answer. It is zero while no question waits.
type questionState struct {
	asked     *agent.Question
	audible   bool      // the robot has begun to play the question, so people can answer
	published bool      // event.Asked was published
	until     time.Time // when the question expires; zero while the robot plays the agent's question, and once it has expired
}

// isWaiting reports whether a question waits for an answer.
func (q *questionState) isWaiting() bool { return q.asked != nil }

// queueState holds commands and announcements that wait. Its methods do not modify the slices of earlier
// states.
type queueState struct {
	early       []Input        // commands that came before hello
	waiting     []Announcement // announcements to be spoken when no turn is under way
	yieldsUntil time.Time      // all announcements wait until then for a person who has interrupted the robot
	openerUntil time.Time      // some announcements (see canYield) wait until then for the person who has opened the channel
}

// musicState is the music that the robot plays whenever nothing else is spoken or played. It is zero without music.
type musicState struct {
	sound *Sound
	begun bool      // it was heard already
	from  time.Time // after an interruption it waits until then, so that people can go on speaking
	// stopsAt is when the music stops after a touch; zero if nobody has touched the robot. The button of push-to-talk
	// sends the same message as a touch, and opens the microphone within listenAfter: then the music only pauses.
	stopsAt time.Time
}

// playsMusic reports whether the turn under way plays the music.
func (s *State) playsMusic() bool {
	return s.music.sound != nil && s.turn.announcement.Sound == s.music.sound
}

// musicFrom returns when waiting music may go on.
func (s *State) musicFrom() time.Time {
	if s.queue.yieldsUntil.After(s.music.from) {
		return s.queue.yieldsUntil
	}
	return s.music.from
}

func (q *queueState) push(a Announcement) { q.waiting = append(slices.Clip(q.waiting), a) }

// pushFront puts an announcement before all others.
func (q *queueState) pushFront(a Announcement) {
	q.waiting = append([]Announcement{a}, q.waiting...)
}

// remove removes the announcements that match, and returns them.
func (q *queueState) remove(match func(Announcement) bool) (removed []Announcement) {
	var rest []Announcement
	for _, a := range q.waiting {
		if match(a) {
			removed = append(removed, a)
		} else {
			rest = append(rest, a)
		}
	}
	q.waiting = rest
	return removed
}

// speakableFrom returns the earliest time at which an announcement may begin without interrupting people.
func (q *queueState) speakableFrom(a Announcement) time.Time {
	if a.canYield() && q.openerUntil.After(q.yieldsUntil) {
		return q.openerUntil
	}
	return q.yieldsUntil
}

// Announcement is something that a robot speaks or plays and that does not come from a brain. Exactly one
// of the first four fields is set.
type Announcement struct {
	Text     string
	Phrase   string    // name of a phrase
	Sound    *Sound    // sound or music to play
	Question *Question // question to ask
	Notice   string    // ID of the notification that is spoken; empty if the announcement is not a notification
	Command  string    // ID of the stored command that is carried out; empty if the announcement is not a stored command
	Expires  time.Time // when a stored command expires; zero for others
	Urgent   bool      // comes first and interrupts the turn under way, unless the turn has published a question
	Hint     bool      // a hint on how to wake the robot is shown afterwards
}

// canYield reports whether the announcement lets the person who has opened the channel speak first.
func (a Announcement) canYield() bool { return (a.Notice != "" || a.Command != "") && !a.Urgent }

// isSpeech reports whether the announcement is speech that is repeated if nobody has heard it.
func (a Announcement) isSpeech() bool { return a.Text != "" || a.Question != nil }

// Sound is a sound or music that a robot plays.
type Sound struct {
	Name  string
	PCM   []int16 // 24 kHz; nil for music
	Music Music   // nil for a sound
}

// Music is music, which may last for hours.
type Music interface {
	// Play calls out with consecutive pieces of 24 kHz PCM until the music or ctx ends, or out returns an error. A
	// later call goes on where the last one has stopped.
	Play(ctx context.Context, out func(pcm []int16) error) error
}

// Question is a question that the appliance asks the people near a robot. Questions are compared by
// their addresses.
type Question struct {
	agent.Question
	Ended chan Ending // receives one value; must have a buffer for it
}

// Ending is how a Question has ended: with an answer or an error.
type Ending struct {
	Answer agent.Answer
	Err    error
}

// isExpired reports whether the time for an answer is over.
func (q *Question) isExpired(now time.Time) bool { return !now.Before(q.Until) }

// PhraseAwake is the name of the phrase that answers a wake word.
const PhraseAwake = "awake"

// PhraseMusic is the name of the phrase for music that cannot be played.
const PhraseMusic = "music_failed"

// CommandSay is the kind of command that speaks a sentence, as in event.Command.
const CommandSay = "say"

// ReasonExpired is the reason for rejecting a command that has expired.
const ReasonExpired = "it has waited too long"

// Limits of queues.
const (
	// MaxStored is how many sentences may wait for a robot's channel to open.
	MaxStored = 40
	// maxQueued is how many announcements may wait for a turn to end: 80, twice as many as may be stored.
	// Notifications are accepted up to 160.
	maxQueued = 2 * MaxStored
	// maxEarly is how many commands may wait for hello.
	maxEarly = MaxStored
)

// Times and intervals. They are the same for every robot.
const (
	// helloTimeout is how long a robot may take to send its hello.
	helloTimeout = 10 * time.Second
	// stallTimeout is how long after its latest packet an utterance ends if no more arrive.
	stallTimeout = 1200 * time.Millisecond
	// settleAfter is how long after hello a robot that sends nothing more is assumed to have left its
	// connecting state, where it refuses to speak.
	settleAfter = 2 * time.Second
	// listenAfter is how long after a wake word or a press of the button the microphone may take to open.
	listenAfter = 500 * time.Millisecond
	// keepAliveEvery is how long after the latest message a keep-alive is sent: the robot closes a channel
	// on which it receives nothing for 120 s.
	keepAliveEvery = time.Minute
	// resumeWithin is how long after tts stop a listen start counts as sent by the robot itself, and not
	// because of a person. After an interruption, announcements wait that long for the microphone to open.
	resumeWithin = 2 * time.Second
	// unsolicitedFor is how long after its beginning an announcement cannot be interrupted by the opening of
	// the microphone. For example, a detected face causes a greeting and opens the microphone.
	unsolicitedFor = 2 * time.Second
	// holdMargin is how much longer than requested a channel is held open: a timer that ends at the requested
	// time has to be announced after that time.
	holdMargin = 30 * time.Second
	// yieldFor is how long announcements wait for a person to speak once the microphone is open, after an
	// interruption or after the channel has opened.
	yieldFor = 3 * time.Second
	// IntroduceEvery is how often a robot gets a new token for its camera.
	IntroduceEvery = 30 * time.Minute
	// minTypedGap is the shortest time between two typed texts. A text that comes sooner is ignored.
	minTypedGap = 500 * time.Millisecond
)

// hasPassed reports whether a duration has passed since a time.
func hasPassed(now, since time.Time, d time.Duration) bool { return !now.Before(since.Add(d)) }

// Closed reports whether the channel was closed. Inputs have no effect then.
func (s *State) Closed() bool { return s.phase == closing }

// Mode returns the robot's listening mode.
func (s *State) Mode() xiaozhi.Mode { return s.mic.mode }

// Hearing reports whether somebody is speaking an utterance.
func (s *State) Hearing() bool { return s.phase == hearing }

// Asking reports whether a question waits for an answer.
func (s *State) Asking() bool { return s.question.isWaiting() }

// Unspoken returns the waiting sentences that are stored nowhere else.
func (s *State) Unspoken() (texts []string) {
	for _, a := range s.queue.waiting {
		if a.Notice == "" && a.Command == "" && a.Text != "" {
			texts = append(texts, a.Text)
		}
	}
	return texts
}

// FindsSpeech reports whether the end-pointer must look for utterances. In manual mode the button marks
// them instead. In auto mode, speech does not stop a turn (see isInterruptible), so the end-pointer looks for
// no utterance while the robot thinks. While the robot speaks, its microphone is closed.
func (s *State) FindsSpeech() bool {
	switch s.mic.mode {
	case xiaozhi.Manual:
		return false
	case xiaozhi.Realtime:
		return s.mic.listening && s.phase > quiet && s.phase < closing
	}
	return s.phase == ready || s.phase == hearing || s.isInterruptible()
}

// isInterruptible reports whether speech stops the turn. Speech stops music that has not begun to sound. Otherwise
// only in realtime mode speech stops a turn: while the robot speaks, or while the agent thinks about words that were understood. Speech does not stop the turn while
// a question waits, nor while an utterance is being recognized, because the speech becomes the next utterance
// once the first is recognized.
func (s *State) isInterruptible() bool {
	if s.playsMusic() && s.phase == thinking { // the station is being connected, and nothing is to be heard yet
		return s.mic.listening && s.mic.mode != xiaozhi.Manual
	}
	if s.mic.mode != xiaozhi.Realtime || !s.mic.listening || !s.turn.active || s.question.isWaiting() {
		return false
	}
	return s.phase == speaking || s.phase == thinking && s.turn.understood
}

// isUnsolicited reports whether an announcement has just begun and the robot has not aborted it.
func (s *State) isUnsolicited(now time.Time) bool {
	return now.Before(s.turn.unsolicitedUntil) && !s.mic.hasJustAborted(now)
}

// requeue puts the turn's announcement back into the queue, if nobody has heard any of it.
func (s *State) requeue() {
	if !s.turn.begun && !s.question.published && s.turn.announcement.isSpeech() {
		s.turn.announcement.Urgent = false // the person who has interrupted the announcement speaks first
		s.queue.pushFront(s.turn.announcement)
		s.turn.announcement = Announcement{}
	}
}

// openMicrophone begins to listen to a microphone that has opened during the turn.
func (s *State) openMicrophone() {
	s.mic.listening, s.turn.listensAfter = s.mic.listening || s.turn.listensAfter, false
}

// yieldToOpener makes announcements wait for a person to speak, because the microphone has opened. If all
// announcements wait already because of an interruption, they now wait until yieldFor from now. Announcements
// that can yield wait until then too, unless a detected face has opened the channel, or the microphone has
// opened before and the person who has opened the channel has had time to speak.
func (s *State) yieldToOpener(now time.Time) {
	until := now.Add(yieldFor)
	if now.Before(s.queue.yieldsUntil) {
		s.queue.yieldsUntil = until
	}
	switch {
	case s.mic.everOpened && !now.Before(s.queue.openerUntil):
	case s.mic.openedByFace:
		s.queue.openerUntil = time.Time{}
	default:
		s.queue.openerUntil = until
	}
}

// endOpenerTime is called when a turn ends. If the turn was understood, announcements no longer wait for
// the person who has opened the channel. After any other turn, such as a greeting, they wait for yieldFor
// again if they still waited when the turn began, unless the microphone was never opened, or two or more
// utterances in a row were misheard.
func (s *State) endOpenerTime(now time.Time) {
	switch {
	case s.turn.understood:
		s.queue.openerUntil = time.Time{}
	case !s.queue.openerUntil.IsZero() && s.mic.everOpened && s.mic.misheard <= 1:
		s.queue.openerUntil = now.Add(yieldFor)
	}
}

// idleAt returns when the channel will be closed as idle, or the zero time if it will not be. The channel of
// a robot that sends sensor events stays open, because the robot would open another one at once.
func (s *State) idleAt() time.Time {
	if s.settings.Idle == 0 || s.settings.Standing && !s.mic.everOpened || s.turn.active || s.channel.sensing || s.phase == greeting || s.phase == closing {
		return time.Time{}
	}
	at := s.channel.activeAt.Add(s.settings.Idle)
	if until := s.channel.heldUntil.Add(holdMargin); !s.channel.heldUntil.IsZero() && at.Before(until) {
		return until
	}
	return at
}
