package robot

import (
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
)

// Inputs are what can happen to a session. The set is closed.
type input interface{ input() }

type (
	fromRobot struct{ message xiaozhi.FromRobot } // by the robot

	speechBegan struct{} // found by the end-pointer
	speechEnded struct{}
	streaming   struct{} // sound goes on without a listen start

	transcript       struct{ text string } // by the turn's recognizer
	misheard         struct{}
	questionPut      struct{ question *agent.Question } // by the turn
	questionAnswered struct{ answer agent.Answer }      // the question has its answer
	turnFinished     struct{ end, reason string }       // no end: nothing came of it, as with a noise

	announce  struct{ announcement } // by the appliance
	showAlert struct {               // a notification without sound
		alert  xiaozhi.Alert
		notice string
	}
	showEmotion     struct{ emotion agent.Emotion }
	injectText      struct{ text string }
	abort           struct{}
	holdChannel     struct{ until time.Time }
	collectCommands struct{} // what waits: more has come
	decideQuestion  struct { // a question
		id    string
		allow bool
	}
	reboot struct{}
	hangUp struct{ why string }
	tick   struct{}
)

func (fromRobot) input()        {}
func (speechBegan) input()      {}
func (speechEnded) input()      {}
func (streaming) input()        {}
func (transcript) input()       {}
func (misheard) input()         {}
func (questionPut) input()      {}
func (questionAnswered) input() {}
func (turnFinished) input()     {}
func (playbackProgress) input() {}
func (announce) input()         {}
func (showAlert) input()        {}
func (showEmotion) input()      {}
func (injectText) input()       {}
func (abort) input()            {}
func (holdChannel) input()      {}
func (collectCommands) input()  {}
func (decideQuestion) input()   {}
func (reboot) input()           {}
func (hangUp) input()           {}
func (tick) input()             {}
