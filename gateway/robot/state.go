package robot

import (
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
)

// phase is where a talk stands.
type phase int

const (
	greeting phase = iota // no hello yet
	quiet                 // the microphone is not ours to listen to
	ready                 // listening, nobody speaks yet
	hearing               // an utterance is being spoken
	thinking              // a turn is under way and has not spoken, or not for a while
	speaking              // a turn's speech is playing
	closing               // hung up
)

// state is all that decides what a session does next. It is a value and
// belongs to the loop.
type state struct {
	phase phase
	mode  xiaozhi.Mode
	timing
	greets bool // wake words are answered

	settled   bool      // the robot has left its connecting state: it can be made to speak
	listening bool      // its microphone is open, as far as it has told us
	sensing   bool      // it has sent an event: it would reopen a closed channel at once
	resumes   time.Time // until then it may say by itself that it listens again
	aborted   time.Time // its latest abort

	// Of the turn under way.
	turn       bool
	turnDone   bool // its brain has finished
	drained    bool // its speech has been played
	begun      bool // the first packet of it has left
	answers    bool // words that were understood
	telling    telling
	unasked    time.Time // until then a microphone that opens was not opened because of what is told
	opens      bool      // the microphone, for us, once all is told
	end        string
	reason     string
	asking     bool // it waits for an answer
	put        bool // its first sound has left: nobody answers what he has not heard
	announced  bool // it was published
	question   *agent.Question
	lastSaid   string // the latest sentence whose first packet has left
	askedUntil time.Time

	early   []input   // from the house, before hello
	toSay   []telling // once the turn has ended
	refused int       // utterances refused since the last that was understood

	opened     time.Time
	greeted    time.Time // the first hello
	understood time.Time // when last an utterance was understood, or speech of ours ended
	began      time.Time // the utterance under way
	packetAt   time.Time // the latest sound of it; the loop sets it for each packet, without a step. Zero before the first
	flow       flow      // of all sound
	rested     time.Time // our speech ended in auto mode, and the robot has not said since whether it listens
	listened   bool      // it has opened its microphone at least once
	open       bool      // and has not said since that it is closed
	typed      time.Time // when last a text was taken that somebody typed
	woken      time.Time // a wake word that has not been answered
	fed        time.Time // a message last left
	introduced time.Time // we last introduced ourselves to the robot's tools; zero where it has none
	heldUntil  time.Time // the channel is not hung up before
	yields     time.Time // what waits to be said lets somebody who interrupted speak until then
	opener     time.Time // and what has waited for the talk whoever opened it; zero once that is over
	byFace     bool      // a face has opened the talk
	leaves     bool      // the talk is over, once what has waited for it is told
}

// timing are the limits a session keeps.
type timing struct {
	hello   time.Duration // for the first message
	idle    time.Duration // of a talk with nothing understood; 0 is for ever
	stalled time.Duration // packets that stop end an utterance
	longest time.Duration // utterance
}

// Times that are the same for every robot.
const (
	// settleAfter is how long after its hello a robot that says nothing more is
	// taken to have left its connecting state, in which it cannot speak.
	settleAfter = 2 * time.Second
	// listenAfter is how long after a wake word the microphone may take to open.
	listenAfter = 500 * time.Millisecond
	// feedEvery keeps the robot's clock of 120 s from running out.
	feedEvery = time.Minute
	// resumeWithin is how long after tts stop the robot's own listen start may
	// come: it first plays what it was sent.
	resumeWithin = 2 * time.Second
	// unaskedFor is how long after we begin to tell something by ourselves a
	// microphone may open that nobody opens to interrupt: the same face that is
	// greeted opens a talk.
	unaskedFor = 2 * time.Second
	// heldOver is how much longer a channel is held than was asked: what it is
	// held for happens at that time, and then has to be said.
	heldOver = 30 * time.Second
	// yieldFor is how long somebody has to begin to speak for whom a microphone has
	// opened, because he interrupted or opened the talk. One that is to open after
	// an interruption does so within resumeWithin.
	yieldFor = 3 * time.Second
	// introduceEvery is how often the robot is given a new token for its camera.
	introduceEvery = 30 * time.Minute
)

// mostToSay bounds the sentences that wait for a turn to end: those that had
// waited for the channel, and as many more. mostEarly bounds what the house
// wants before hello.
const (
	mostToSay = 2 * mostWaiting
	mostEarly = mostWaiting
)

// telling is something to say that nobody has asked for.
type telling struct {
	text     string
	phrase   string    // of the phrasebook, instead of a text
	sound    *sound    // instead of a text
	question *inquiry  // instead of a text
	notice   string    // its id, where it is a notification
	waited   string    // the id of a command that waited for the channel to open
	late     time.Time // when that is not worth saying any more
	urgent   bool      // it waits for nobody
}

// patient reports whether it has waited, or can, until whoever opens a talk has
// had a turn.
func (t telling) patient() bool { return (t.notice != "" || t.waited != "") && !t.urgent }

// words reports whether it is spoken, and told later where nobody has heard it.
func (t telling) words() bool { return t.text != "" || t.question != nil }

// Inputs are what can happen to a session. The set is closed.
type input interface{ input() }

type (
	said struct{ message xiaozhi.FromRobot } // by the robot

	speechBegan struct{} // found by the end-pointer
	speechEnded struct{}
	streaming   struct{} // sound goes on that we have not been told to listen to

	heard    struct{ text string } // by the turn's recognizer
	misheard struct{}
	askedFor struct{ question *agent.Question } // by the turn
	replied  struct{ answer agent.Answer }      // the question has its answer
	finished struct{ end, reason string }       // no end: nothing came of it, as with a noise

	played struct{ progress } // by the writer

	tell struct { // from the house
		telling
		urgent bool
	}
	show struct { // a notification without sound
		alert  xiaozhi.Alert
		notice string
	}
	feel   struct{ emotion agent.Emotion }
	hear   struct{ text string }
	silent struct{} // abort
	hold   struct{ until time.Time }
	gather struct{} // what waits: more has come
	decide struct { // a question
		id    string
		allow bool
	}
	reboot struct{}
	hangUp struct{ why string }
	tick   struct{}
)

func (said) input()        {}
func (speechBegan) input() {}
func (speechEnded) input() {}
func (streaming) input()   {}
func (heard) input()       {}
func (misheard) input()    {}
func (askedFor) input()    {}
func (replied) input()     {}
func (finished) input()    {}
func (played) input()      {}
func (tell) input()        {}
func (show) input()        {}
func (feel) input()        {}
func (hear) input()        {}
func (silent) input()      {}
func (hold) input()        {}
func (gather) input()      {}
func (decide) input()      {}
func (reboot) input()      {}
func (hangUp) input()      {}
func (tick) input()        {}

// Effects are what a session does about it. The set is closed, and the loop
// carries them out in their order.
type effect interface{ effect() }

type (
	send    struct{ message xiaozhi.ToRobot }
	publish struct{ event event.Event }
	// detected is the text that a robot says has woken it, and sensed what its
	// senses tell.
	detected struct{ text string }
	sensed   struct{ event xiaozhi.Event }

	welcome struct { // answer a hello
		hello xiaozhi.Hello
		first bool
	}
	introduce struct{ list bool }      // us to the robot's tools, and ask for their list
	collect   struct{}                 // what waited for the robot while its channel was closed
	deliver   struct{ payload []byte } // an MCP response
	listenNew struct{}                 // forget sound and speech so far
	keepHeard struct{ text string }    // as what the turn answers

	beginTurn       struct{ turnStart }
	giveUtterance   struct{} // to the turn that asks
	cutQuestion     struct{} // somebody answers before it has been put
	startAgain      struct{} // have the robot speak that may have gone on listening
	finishUtterance struct{}
	showQuestion    struct{ question *agent.Question } // to whoever may answer elsewhere
	answerAsk       struct{ agent.Answer }
	endTurn         struct{ end, reason string } // it has ended by itself: tell, and write it down
	closeChannel    struct{ why string }
	forgetCommand   struct{ id string } // it was carried out, or never will be
)

// cancelTurn stops a turn and drops its playback. A tts stop follows where
// the robot was made to speak, and always when it answers an abort.
type cancelTurn struct{ abort bool }

// turnStart is what a turn begins with: an utterance being spoken, a text as
// if spoken, or something to tell.
type turnStart struct {
	text      string
	telling   telling
	aloud     bool // a refused utterance is answered aloud
	utterance bool
}

func (send) effect()            {}
func (publish) effect()         {}
func (detected) effect()        {}
func (sensed) effect()          {}
func (welcome) effect()         {}
func (introduce) effect()       {}
func (collect) effect()         {}
func (deliver) effect()         {}
func (listenNew) effect()       {}
func (keepHeard) effect()       {}
func (beginTurn) effect()       {}
func (giveUtterance) effect()   {}
func (cutQuestion) effect()     {}
func (startAgain) effect()      {}
func (finishUtterance) effect() {}
func (showQuestion) effect()    {}
func (answerAsk) effect()       {}
func (cancelTurn) effect()      {}
func (endTurn) effect()         {}
func (closeChannel) effect()    {}
func (forgetCommand) effect()   {}
