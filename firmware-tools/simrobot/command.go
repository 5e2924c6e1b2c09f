package simrobot

import (
	"context"
	"time"

	"perch/device/xiaozhi"
)

// command is what somebody does to the robot from outside.
type command struct {
	do     doable
	phrase string
	event  xiaozhi.Event
}

type doable int

const (
	doTap doable = iota
	doWake
	doPress
	doRelease
	doSense
)

// Tap touches the robot's face: one that speaks asks the server to stop, one
// that listens hangs up. Like the methods below it may be called from any
// goroutine; more than eight commands at once are lost.
func (r *Robot) Tap() { r.command(command{do: doTap}) }

// WakeWord calls the robot by its name: one that speaks asks the server to
// stop and listens at once, or when the server has stopped (2.1). One that is
// idle with an open channel listens, or not (2.2.4, dotty). One that listens
// hears no wake words.
func (r *Robot) WakeWord(phrase string) { r.command(command{do: doWake, phrase: phrase}) }

// Press pushes the button of push-to-talk down: one that speaks asks the
// server to stop, and either way the robot listens. One that listens already
// does not care.
func (r *Robot) Press() { r.command(command{do: doPress}) }

// Release lets the button go: one that listens stops, and leaves the channel
// open for the answer.
func (r *Robot) Release() { r.command(command{do: doRelease}) }

// Sense has the robot tell an event. Dotty's build opens a channel for it.
func (r *Robot) Sense(e xiaozhi.Event) { r.command(command{do: doSense, event: e}) }

func (r *Robot) command(c command) {
	select {
	case r.commands <- c:
	default:
	}
}

// obey carries out a command.
func (s *session) obey(now time.Time, c command) error {
	switch c.do {
	case doWake:
		return s.wake(now, c.phrase)
	case doPress:
		return s.press(now)
	case doRelease:
		return s.release(now)
	case doSense:
		return s.sense(now, c.event)
	}
	return s.tap(now)
}

func (s *session) tap(now time.Time) error {
	switch s.state {
	case Speaking:
		s.interrupts(now)
		return s.send(now, xiaozhi.Abort{}) // and it speaks on until tts stop
	case Listening:
		return errTapped
	}
	if s.stale {
		return &reopening{opening{by: byTap, replaces: true}}
	}
	s.mode = s.usual
	return s.listen(now)
}

// wake is a wake word in any state. That of a robot that listens already is
// not detected.
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
		return &reopening{opening{by: byWake, phrase: phrase, replaces: true}}
	case does == wakeLost:
		s.r.wakeOff = true // what listens for wake words was stopped by this one
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
	s.interrupts(now)
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

// press is the button of push-to-talk going down. A microphone that is open
// already, in realtime mode, stays so without a word to the server.
func (s *session) press(now time.Time) error {
	switch {
	case s.state == Listening:
		return nil
	case s.state == Speaking:
		s.interrupts(now)
		if err := s.send(now, xiaozhi.Abort{}); err != nil {
			return err
		}
		s.late = true
	case s.stale:
		return &reopening{opening{by: byButton, replaces: true}}
	}
	s.mode = xiaozhi.Manual
	return s.listen(now)
}

// release is the button going up. The channel stays open for the answer.
func (s *session) release(now time.Time) error {
	if s.state != Listening {
		return nil
	}
	s.mic.open, s.draining = false, false
	err := s.send(now, xiaozhi.ListenStop{})
	s.enter(Idle)
	return err
}

func (s *session) sense(now time.Time, e xiaozhi.Event) error {
	if s.stale && s.r.firmware.events {
		return &reopening{opening{by: byEvent, events: []xiaozhi.Event{e}}}
	}
	return s.tell(now, e)
}

// idle is a robot without a channel, until somebody does something that
// opens one.
func (r *Robot) idle(ctx context.Context) (opening, error) {
	for {
		r.ring(time.Now())
		wait := time.Hour
		if due := r.body.due(); !due.IsZero() {
			wait = time.Until(due)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return opening{}, ctx.Err()
		case <-timer.C:
		case c := <-r.commands:
			timer.Stop()
			switch {
			case c.do == doTap:
				return opening{by: byTap}, nil
			case c.do == doWake && r.wakeOff:
				r.wakeLost(c.phrase)
			case c.do == doWake:
				return opening{by: byWake, phrase: c.phrase}, nil
			case c.do == doPress:
				return opening{by: byButton}, nil
			case c.do == doSense && r.firmware.events:
				return opening{by: byEvent, events: []xiaozhi.Event{c.event}}, nil
			}
		}
	}
}
