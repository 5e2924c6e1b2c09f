package simrobot

import (
	"time"

	"perch/device/xiaozhi"
)

// command is an action of a person, or of the robot's sensors.
type command struct {
	do     action
	phrase string          // the wake word
	events []xiaozhi.Event // to be sent
}

type action int

const (
	doTap action = iota
	doWake
	doPress
	doRelease
	doSense
)

// Tap touches the robot's face: a speaking robot asks the server to
// stop, a listening one hangs up. Like the methods below it may be called from any
// goroutine; of more than eight commands at once the last are lost.
func (r *Robot) Tap() { r.command(command{do: doTap}) }

// WakeWord says a wake word. A speaking robot asks the server to stop and listens
// at once, or when the server has stopped (2.1). An idle one with an open channel
// listens, except in 2.2.4 and dotty. A listening one does not detect wake words.
func (r *Robot) WakeWord(phrase string) { r.command(command{do: doWake, phrase: phrase}) }

// PressButton presses the button of push-to-talk. A speaking robot asks the server to
// stop, and then listens. A listening one ignores it.
func (r *Robot) PressButton() { r.command(command{do: doPress}) }

// Release releases the button. A listening robot stops, and waits for the answer.
func (r *Robot) Release() { r.command(command{do: doRelease}) }

// SendEvents makes the robot send an event. Only dotty's build opens a channel for it.
func (r *Robot) SendEvents(e xiaozhi.Event) {
	r.command(command{do: doSense, events: []xiaozhi.Event{e}})
}

func (r *Robot) command(c command) {
	select {
	case r.commands <- c:
	default:
	}
}

func (s *session) handleCommand(now time.Time, c command) error {
	switch c.do {
	case doWake:
		return s.wake(now, c.phrase)
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

func (s *session) tap(now time.Time) error {
	switch s.state {
	case Speaking:
		s.recordInterruption(now)
		return s.send(now, xiaozhi.Abort{}) // it goes on speaking until tts stop
	case Listening:
		return errTapped
	}
	if s.stale {
		return &opening{command: command{do: doTap}, replaces: true}
	}
	s.mode = s.usual
	return s.listen(now)
}

// wake handles a wake word. A listening robot does not detect it.
func (s *session) wake(now time.Time, phrase string) error {
	switch does := s.r.firmware.wake; {
	case s.state == Listening:
		return nil
	case s.r.wakeOff:
		s.r.wakeLost(phrase)
		return nil
	case s.state == Speaking:
		return s.wakeSpeaking(now, phrase)
	case s.stale:
		return &opening{command: command{do: doWake, phrase: phrase}, replaces: true}
	case does == wakeLost:
		s.r.wakeOff = true // the wake word stopped its detector
		s.r.wakeLost(phrase)
		return nil
	case does == wakeWorks:
		s.enter(Connecting)
	}
	return s.wakeUp(now, phrase)
}

func (r *Robot) wakeLost(phrase string) {
	r.stats.WakeWordsLost++
	r.o.Observe(WakeLost{Phrase: phrase})
}

func (s *session) wakeSpeaking(now time.Time, phrase string) error {
	s.r.o.Observe(Woken{Phrase: phrase})
	s.recordInterruption(now)
	if err := s.send(now, xiaozhi.Abort{Reason: xiaozhi.WakeWord}); err != nil {
		return err
	}
	if s.r.firmware.wake == wakeWaits {
		return nil
	}
	s.mode, s.late = s.usual, true
	s.enter(Listening)
	return s.openMic(now)
}

// pressButton handles the pressed button. In realtime mode the microphone is open
// already, and the server gets no message.
func (s *session) pressButton(now time.Time) error {
	switch {
	case s.state == Listening:
		return nil
	case s.state == Speaking:
		s.recordInterruption(now)
		if err := s.send(now, xiaozhi.Abort{}); err != nil {
			return err
		}
		s.late = true
	case s.stale:
		return &opening{command: command{do: doPress}, replaces: true}
	}
	s.mode = xiaozhi.Manual
	return s.listen(now)
}

// release handles the released button. The channel stays open for the answer.
func (s *session) release(now time.Time) error {
	if s.state != Listening {
		return nil
	}
	s.mic.next, s.draining = time.Time{}, false
	s.mic.spokeAt = now // no server knows it earlier
	err := s.send(now, xiaozhi.ListenStop{})
	s.enter(Idle)
	return err
}

// opens reports whether a command opens a channel.
func (r *Robot) opens(c command) bool {
	switch {
	case c.do == doRelease, c.do == doSense && !r.firmware.events:
		return false
	case c.do == doWake && r.wakeOff:
		r.wakeLost(c.phrase)
		return false
	}
	return true
}
