package simrobot

import (
	"time"

	"perch/device/xiaozhi"
)

// State is of the firmware's state machine, as far as a talk goes.
type State string

// The states of a talk.
const (
	Idle       State = "idle"
	Connecting State = "connecting"
	Listening  State = "listening"
	Speaking   State = "speaking"
)

func (s *session) enter(state State) {
	if s.state != state {
		s.state = state
		s.r.o.Observe(Entered{State: state})
	}
}

// listen is the Listening state. The microphone of realtime mode is open
// already, and then nothing is sent. In auto mode the newer builds let their
// queue run empty first.
func (s *session) listen(now time.Time) error {
	s.enter(Listening)
	if s.mic.open {
		return nil
	}
	if s.mode == xiaozhi.Auto && s.r.firmware.drains && !s.play.drained() {
		s.draining = true
		return nil
	}
	return s.openMic(now)
}

// openMic starts the audio processor, which empties the queue: that is how
// the older builds lose the end of a speech.
func (s *session) openMic(now time.Time) error {
	s.draining = false
	if err := s.send(now, xiaozhi.ListenStart{Mode: s.mode}); err != nil {
		return err
	}
	s.cut += s.play.reset()
	s.mic.start(now)
	return nil
}

// speak is the Speaking state, which a robot enters from Idle and Listening.
func (s *session) speak(now time.Time) {
	if s.state != Idle && s.state != Listening {
		return
	}
	s.enter(Speaking)
	s.draining = false
	if s.mode != xiaozhi.Realtime {
		s.mic.open = false
	}
	s.play.reset()
	s.arrived = arrivals{}
	s.interrupted(now)
}

// stopSpeaking is what tts stop does.
func (s *session) stopSpeaking(now time.Time) error {
	if s.state != Speaking {
		return nil
	}
	s.play.over()
	s.cut = 0
	var err error
	if s.mode == xiaozhi.Manual {
		s.enter(Idle)
	} else {
		err = s.listen(now)
	}
	s.r.o.Observe(Stopped{Cut: s.cut})
	return err
}

// press is the button of push-to-talk going down; a robot that speaks is told
// to stop.
func (s *session) press(now time.Time) error {
	if s.state == Speaking {
		if err := s.send(now, xiaozhi.Abort{}); err != nil {
			return err
		}
	}
	return s.listen(now)
}

// release is the button going up. The channel stays open for the answer.
func (s *session) release(now time.Time) error {
	s.mic.open = false
	err := s.send(now, xiaozhi.ListenStop{})
	s.enter(Idle)
	return err
}

// command is what somebody does to the robot from outside.
type command struct{ wake string } // empty is a tap

// Tap touches the robot's face: one that speaks asks the server to stop, one
// that listens hangs up. It may be called from any goroutine; more than eight
// taps at once are lost.
func (r *Robot) Tap() { r.command(command{}) }

// WakeWord calls the robot by its name: one that speaks asks the server to
// stop and listens at once. It may be called from any goroutine.
func (r *Robot) WakeWord(phrase string) { r.command(command{wake: phrase}) }

func (r *Robot) command(c command) {
	select {
	case r.commands <- c:
	default:
	}
}

// obey carries out a command.
func (s *session) obey(now time.Time, c command) error {
	switch {
	case c.wake != "" && s.state == Speaking:
		if err := s.send(now, xiaozhi.Abort{Reason: xiaozhi.WakeWord}); err != nil {
			return err
		}
		s.cut += s.play.reset()
		return s.listen(now)
	case c.wake != "":
		return nil // already listening, or stock 2.2's fault: dropped while idle with an open channel
	case s.state == Speaking:
		return s.send(now, xiaozhi.Abort{}) // and it speaks on until tts stop
	case s.state == Listening:
		return errTapped
	}
	return s.listen(now)
}
