package simrobot

import (
	"time"

	"perch/device/xiaozhi"
)

// State is a state of the firmware's state machine during a talk.
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
		if state == Idle && s.state != Connecting || state == Speaking {
			s.r.wakeOff = false // these transitions switch the detector on
		}
		s.state = state
		s.r.person.overlap = s.r.person.overlap && state == Speaking
		s.r.o.Observe(Entered{State: state})
	}
}

// listen enters the Listening state. If the microphone is open already, as in realtime
// mode, nothing is sent. In auto mode the newer builds first play their queue to its end.
func (s *session) listen(now time.Time) error {
	s.enter(Listening)
	if s.mic.open() {
		return nil
	}
	if s.mode == xiaozhi.Auto && s.r.firmware.drains && !s.play.drained() {
		s.draining = true
		return nil
	}
	return s.openMic(now)
}

// openMic starts the audio processor, which empties the queue: older builds lose sound.
func (s *session) openMic(now time.Time) error {
	s.draining = false
	if err := s.send(now, xiaozhi.ListenStart{Mode: s.mode}); err != nil {
		return err
	}
	s.cut += s.empty()
	if !s.mic.open() {
		s.mic.start(now)
	}
	return nil
}

// empty empties the queue. After a barge-in its packets do not count as lost.
func (s *session) empty() int {
	n := s.play.reset()
	if s.bargedIn {
		s.r.stats.CutByBargeIn += n
	} else {
		s.r.stats.Cut += n
	}
	return n
}

// speak enters the Speaking state, from Idle or Listening.
func (s *session) speak(now time.Time) {
	if s.state != Idle && s.state != Listening {
		return
	}
	s.enter(Speaking)
	s.draining = false
	if s.mode != xiaozhi.Realtime {
		s.mic.next = time.Time{}
	}
	s.empty()
	s.bargedIn, s.late, s.r.person.cutIn = false, false, time.Time{}
	s.arrived = arrivals{}
	s.interrupted(now)
}

func (s *session) stopSpeaking(now time.Time) error {
	if s.state != Speaking {
		return nil
	}
	s.play.speech = false
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
