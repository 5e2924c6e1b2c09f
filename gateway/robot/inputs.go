package robot

import (
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
)

// Inputs are what can happen to a session. The set is closed.
type input interface{ step(s *stepper) }

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

func (speechBegan) step(s *stepper)     { s.speechBegan() }
func (speechEnded) step(s *stepper)     { s.utteranceOver() }
func (in announce) step(s *stepper)     { s.announce(in.announcement) }
func (abort) step(s *stepper)           { s.interrupt(true) }
func (collectCommands) step(s *stepper) { s.do(collectWaiting{}) }
func (in holdChannel) step(s *stepper)  { s.channel.heldUntil = in.until }
func (reboot) step(s *stepper)          { s.do(send{xiaozhi.Reboot{}}) }
func (in hangUp) step(s *stepper)       { s.close(in.why) }
