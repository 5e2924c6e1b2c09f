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

	listening  bool // the robot's microphone is open, as far as it has told us
	sensing    bool // it has sent an event: it would reopen a closed channel at once
	turn       bool // a turn is under way
	turnDone   bool // its brain has finished
	drained    bool // its speech has been played
	end        string
	reason     string
	refused    int  // utterances refused since the last that was understood
	asking     bool // the turn waits for an answer
	question   string
	resumes    bool // the robot will say by itself that it listens again
	toSay      []string
	askedUntil time.Time

	opened     time.Time
	understood time.Time // when last an utterance was understood, or speech of ours ended
	began      time.Time // the utterance under way
	packetAt   time.Time // the latest sound
}

// timing are the limits a session keeps.
type timing struct {
	hello   time.Duration // for the first message
	idle    time.Duration // of a talk with nothing understood; 0 is for ever
	stalled time.Duration // packets that stop end an utterance
	longest time.Duration // utterance
}

// mostToSay bounds the sentences that wait for a turn to end.
const mostToSay = 20

// Inputs are what can happen to a session. The set is closed.
type input interface{ input() }

type (
	said struct{ message xiaozhi.FromRobot } // by the robot

	speechBegan struct{} // found by the end-pointer
	speechEnded struct{}

	heard    struct{ text string } // by the turn's recognizer
	misheard struct{}
	askedFor struct{ id, text string }       // by the turn's brain
	replied  struct{ outcome agent.Outcome } // the question has its answer
	finished struct{ end, reason string }    // no end: nothing came of it, as with a noise

	played struct{ progress } // by the writer

	tell   struct{ text string } // from the house
	hear   struct{ text string }
	silent struct{} // abort
	hangUp struct{ why string }
	tick   struct{}
)

func (said) input()        {}
func (speechBegan) input() {}
func (speechEnded) input() {}
func (heard) input()       {}
func (misheard) input()    {}
func (askedFor) input()    {}
func (replied) input()     {}
func (finished) input()    {}
func (played) input()      {}
func (tell) input()        {}
func (hear) input()        {}
func (silent) input()      {}
func (hangUp) input()      {}
func (tick) input()        {}

// Effects are what a session does about it. The set is closed, and the loop
// carries them out in their order.
type effect interface{ effect() }

type (
	send    struct{ message xiaozhi.ToRobot }
	publish struct{ event event.Event }

	welcome   struct{ hello xiaozhi.Hello } // answer it, and ask for the tools
	deliver   struct{ payload []byte }      // an MCP response
	listenNew struct{}                      // forget sound and speech so far
	keepHeard struct{ text string }         // as what the turn answers

	beginTurn       struct{ turnStart }
	giveUtterance   struct{} // to the turn that asks
	finishUtterance struct{}
	answerAsk       struct{ agent.Answer }
	endTurn         struct{ end, reason string } // it has ended by itself: tell, and write it down
	closeChannel    struct{ why string }
)

// cancelTurn stops a turn and drops its playback. A tts stop follows where
// the robot was made to speak, and always when it answers an abort.
type cancelTurn struct{ abort bool }

// turnStart is what a turn begins with: an utterance being spoken (the zero
// value), a text as if spoken, or a sentence to say.
type turnStart struct {
	text      string
	say       string
	aloud     bool // a refused utterance is answered aloud
	utterance bool
}

func (send) effect()            {}
func (publish) effect()         {}
func (welcome) effect()         {}
func (deliver) effect()         {}
func (listenNew) effect()       {}
func (keepHeard) effect()       {}
func (beginTurn) effect()       {}
func (giveUtterance) effect()   {}
func (finishUtterance) effect() {}
func (answerAsk) effect()       {}
func (cancelTurn) effect()      {}
func (endTurn) effect()         {}
func (closeChannel) effect()    {}
