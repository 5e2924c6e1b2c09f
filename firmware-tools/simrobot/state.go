package simrobot

import (
	"time"

	"perch/device/xiaozhi"
)

// State is a state of the firmware's state machine.
type State string

// The states of a robot with a channel. A robot without a channel is Idle.
const (
	Idle       State = "idle"
	Connecting State = "connecting"
	Listening  State = "listening"
	Speaking   State = "speaking"
)

// enterState changes the state, and passes the change to Options.Observe.
func (s *session) enterState(state State) {
	if s.state != state {
		if state == Idle && s.state != Connecting || state == Speaking {
			s.r.wakeOff = false // the firmware switches the wake word detector on in these transitions
		}
		s.state = state
		s.r.person.overlap = s.r.person.overlap && state == Speaking
		s.r.o.Observe(Entered{State: state})
	}
}

// listen enters the Listening state and opens the microphone, unless the microphone is already open,
// as in realtime mode. In auto mode all firmware but 2.1 first plays the queue to its end.
func (s *session) listen(now time.Time) error {
	s.enterState(Listening)
	if s.mic.isOpen() {
		return nil
	}
	if s.mode == xiaozhi.Auto && s.r.firmware.drains && !s.play.isDrained() {
		s.draining = true
		return nil
	}
	return s.openMic(now)
}

// openMic tells the server that the robot listens, and opens the microphone. Like the firmware it
// empties the queue, which loses sound if the queue was not drained before.
func (s *session) openMic(now time.Time) error {
	s.draining = false
	if err := s.send(now, xiaozhi.ListenStart{Mode: s.mode}); err != nil {
		return err
	}
	s.cut += s.emptyQueue()
	if !s.mic.isOpen() {
		s.mic.start(now)
	}
	return nil
}

// emptyQueue empties the queue and returns the number of discarded packets. If the person has
// interrupted the robot, these packets do not count as lost.
func (s *session) emptyQueue() int {
	n := s.play.reset()
	if s.bargedIn {
		s.r.stats.CutByBargeIn += n
	} else {
		s.r.stats.Cut += n
	}
	return n
}

// startSpeaking enters the Speaking state if the robot is idle or listening.
func (s *session) startSpeaking(now time.Time) {
	if s.state != Idle && s.state != Listening {
		return
	}
	s.enterState(Speaking)
	s.draining = false
	if s.mode != xiaozhi.Realtime {
		s.mic.next = time.Time{}
	}
	s.emptyQueue()
	s.bargedIn, s.stoppedEarly, s.r.person.interruptedAt = false, false, time.Time{}
	s.gaps = gapMeter{}
	s.robotInterrupted(now)
}

// stopSpeaking handles the server's tts stop. It leaves the Speaking state.
func (s *session) stopSpeaking(now time.Time) error {
	if s.state != Speaking {
		return nil
	}
	s.play.speech = false
	s.cut = 0
	var err error
	if s.mode == xiaozhi.Manual {
		s.enterState(Idle)
	} else {
		err = s.listen(now)
	}
	s.r.o.Observe(Stopped{Cut: s.cut})
	return err
}
