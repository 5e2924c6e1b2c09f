package simrobot

import (
	"time"

	"perch/device/xiaozhi"
)

// command is something that a person does to the robot, or that the robot's sensors notice.
type command struct {
	do     action
	phrase string          // wake word; empty unless do is doWake
	events []xiaozhi.Event // events to send; may be empty
}

// action is the kind of a command.
type action int

const (
	doTap     action = iota
	doWake           // say a wake word
	doPress          // press the push-to-talk button
	doRelease        // release the button
	doSense          // send events of the sensors
)

// Tap touches the robot's face. A speaking robot asks the server to stop, a listening robot
// hangs up, and an idle robot starts to listen.
//
// Tap, WakeWord, PressButton, Release and SendEvent may be called from any goroutine. They
// queue a command, or drop it if eight commands are queued. If no channel is open, Tap, WakeWord and
// PressButton open one.
func (r *Robot) Tap() { r.command(command{do: doTap}) }

// WakeWord says a wake word to the robot. A speaking robot asks the server to stop, and
// listens at once (with firmware 2.1, once the server has stopped). An idle robot with an open
// channel listens, except with firmware 2.2.4 and dotty. A listening robot does not detect
// wake words.
func (r *Robot) WakeWord(phrase string) { r.command(command{do: doWake, phrase: phrase}) }

// PressButton presses the push-to-talk button. A speaking robot asks the server to stop, and
// then listens. A listening robot ignores the button.
func (r *Robot) PressButton() { r.command(command{do: doPress}) }

// Release releases the button. A listening robot stops listening and waits for the answer.
func (r *Robot) Release() { r.command(command{do: doRelease}) }

// SendEvent makes the robot send an event. If no channel is open, dotty's firmware opens a
// channel, and other firmware does not send the event.
func (r *Robot) SendEvent(e xiaozhi.Event) {
	r.command(command{do: doSense, events: []xiaozhi.Event{e}})
}

// command queues a command, or drops it if the queue is full.
func (r *Robot) command(c command) {
	select {
	case r.commands <- c:
	default:
	}
}

// handleCommand carries out a command on the open channel. It returns an *opening if the command
// requires a new channel, because the open one is stale.
func (s *session) handleCommand(now time.Time, c command) error {
	switch c.do {
	case doWake:
		return s.handleWakeWord(now, c.phrase)
	case doPress:
		return s.pressButton(now)
	case doRelease:
		return s.release(now)
	case doSense:
		if s.stale && s.r.firmware.events {
			return &opening{command: c}
		}
		return s.sendEvents(now, c.events)
	}
	return s.tap(now)
}

// tap handles a tap on the robot's face.
func (s *session) tap(now time.Time) error {
	switch s.state {
	case Speaking:
		s.recordInterruption(now)
		return s.send(now, xiaozhi.Abort{}) // the robot continues to speak until the server sends tts stop
	case Listening:
		return errTapped
	}
	if s.stale {
		return &opening{command: command{do: doTap}, replaces: true}
	}
	s.mode = s.defaultMode
	return s.listen(now)
}

// handleWakeWord handles a wake word, as the method WakeWord describes.
func (s *session) handleWakeWord(now time.Time, phrase string) error {
	switch behaviour := s.r.firmware.wake; {
	case s.state == Listening:
		return nil
	case s.r.wakeOff:
		s.r.reportWakeLost(phrase)
		return nil
	case s.state == Speaking:
		return s.interruptByWakeWord(now, phrase)
	case s.stale:
		return &opening{command: command{do: doWake, phrase: phrase}, replaces: true}
	case behaviour == wakeLost:
		s.r.wakeOff = true // the firmware has stopped the detector and does not restart it
		s.r.reportWakeLost(phrase)
		return nil
	case behaviour == wakeWorks:
		s.enterState(Connecting)
	}
	return s.wakeUp(now, phrase)
}

// reportWakeLost counts a wake word that the robot missed, and passes it to Options.Observe.
func (r *Robot) reportWakeLost(phrase string) {
	r.stats.WakeWordsLost++
	r.o.Observe(WakeLost{Phrase: phrase})
}

// interruptByWakeWord handles a wake word while the robot is speaking.
func (s *session) interruptByWakeWord(now time.Time, phrase string) error {
	s.r.o.Observe(Woken{Phrase: phrase})
	s.recordInterruption(now)
	if err := s.send(now, xiaozhi.Abort{Reason: xiaozhi.WakeWord}); err != nil {
		return err
	}
	if s.r.firmware.wake == wakeWaits {
		return nil
	}
	s.mode, s.stoppedEarly = s.defaultMode, true
	s.enterState(Listening)
	return s.openMic(now)
}

// pressButton handles a press of the button. If the microphone is already open, as in realtime mode,
// listen sends no message.
func (s *session) pressButton(now time.Time) error {
	switch {
	case s.state == Listening:
		return nil
	case s.state == Speaking:
		s.recordInterruption(now)
		if err := s.send(now, xiaozhi.Abort{}); err != nil {
			return err
		}
		s.stoppedEarly = true
	case s.stale:
		return &opening{command: command{do: doPress}, replaces: true}
	}
	s.mode = xiaozhi.Manual
	return s.listen(now)
}

// release handles the release of the button. The channel stays open for the answer.
func (s *session) release(now time.Time) error {
	if s.state != Listening {
		return nil
	}
	s.mic.next, s.draining = time.Time{}, false
	s.mic.spokeAt = now // in manual mode the release ends the person's speech
	err := s.send(now, xiaozhi.ListenStop{})
	s.enterState(Idle)
	return err
}

// opensChannel reports whether a command opens a channel if no channel is open. If the command is
// a wake word that the robot misses, opensChannel also calls reportWakeLost.
func (r *Robot) opensChannel(c command) bool {
	switch {
	case c.do == doRelease, c.do == doSense && !r.firmware.events:
		return false
	case c.do == doWake && r.wakeOff:
		r.reportWakeLost(c.phrase)
		return false
	}
	return true
}
