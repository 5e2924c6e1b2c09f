package robot

import (
	"slices"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
)

// fromHouse is what others of the house want of the robot.
func (s *stepper) fromHouse(in input) {
	switch in := in.(type) {
	case play:
		s.play(in)
		return
	case ask:
		s.ask(in.about)
		return
	case withdraw:
		s.withdraw(in.about)
		return
	}
	if s.phase == greeting {
		if _, quiet := in.(silent); !quiet && len(s.early) < mostEarly {
			s.early = append(s.early[:len(s.early):len(s.early)], in)
		}
		return
	}
	switch in := in.(type) {
	case tell:
		s.tell(in)
	case show:
		s.show(in)
	case feel:
		s.do(send{xiaozhi.LLM{Emotion: in.emotion.Name, Text: in.emotion.Emoji}},
			publish{event.Emotion{Name: in.emotion.Name, Emoji: in.emotion.Emoji}})
	case hear:
		s.interrupt(false)
		s.begin(turnStart{text: in.text})
	case silent:
		s.interrupt(true)
	case gather:
		s.do(collect{})
	case hold:
		s.heldUntil = in.until
	case decide:
		s.decide(in)
	case reboot:
		s.do(send{xiaozhi.Reboot{}})
	}
}

// tell says something at once, or after the turn under way. What is urgent
// comes before all else and does not wait, but for a question: to cut that
// off would answer it.
func (s *stepper) tell(in tell) {
	if in.notice != "" || in.waited != "" {
		same := func(t telling) bool { return t.notice == in.notice && t.waited == in.waited }
		if s.turn && same(s.telling) {
			return // it is being told
		}
		s.toSay = slices.DeleteFunc(slices.Clone(s.toSay), same)
	}
	waiting := s.toSay
	switch {
	case len(waiting) >= mostToSay && in.notice == "":
		s.do(publish{event.Command{Thing: thingSay, State: event.CommandRejected, Reason: "too much waits to be said"}})
	case len(waiting) >= 2*mostToSay: // a notification is kept elsewhere, and offered again at the next hello
	case in.urgent:
		if s.settled && s.turn && !s.announced {
			s.pushAside()
		}
		in.telling.urgent = true
		s.toSay, s.yields = append([]telling{in.telling}, s.toSay...), time.Time{}
	default:
		s.toSay = append(waiting[:len(waiting):len(waiting)], in.telling)
	}
	s.sayWaiting()
}

// pushAside stops the turn under way for something more urgent. What it was
// telling is told anew afterwards, for nobody has asked it to be quiet.
func (s *stepper) pushAside() {
	if s.telling.words() {
		s.toSay = append([]telling{s.telling}, s.toSay...)
		s.telling = telling{}
	}
	s.interrupt(false)
}

// sayWaiting says what has waited for a turn to end, unless somebody has just
// interrupted to speak, or has opened the talk to.
func (s *stepper) sayWaiting() {
	if s.turn || !s.settled {
		return
	}
	for len(s.toSay) > 0 && s.toSay[0].waited != "" && !s.now.Before(s.toSay[0].late) {
		s.do(forgetCommand{s.toSay[0].waited},
			publish{event.Command{Thing: thingSay, State: event.CommandRejected, Reason: waitedTooLong}})
		s.toSay = s.toSay[1:]
	}
	next := slices.IndexFunc(s.toSay, func(t telling) bool { return !s.now.Before(s.saidFrom(t)) })
	if next < 0 {
		return
	}
	first := s.toSay[next]
	s.toSay = slices.Delete(slices.Clone(s.toSay), next, next+1)
	if first.patient() {
		s.opener = time.Time{}
	}
	s.begin(turnStart{telling: first})
}

// saidFrom is when something that waits may be said, as far as others who want
// to speak are concerned.
func (s *state) saidFrom(t telling) time.Time {
	if t.patient() && s.opener.After(s.yields) {
		return s.opener
	}
	return s.yields
}

// unaskedYet reports whether the turn under way is one that we have just begun
// by ourselves, and nobody has interrupted.
func (s *stepper) unaskedYet() bool {
	return s.now.Before(s.unasked) && !s.justAborted()
}

// justAborted reports whether somebody has told us to be quiet a moment ago: a
// microphone that opens then is opened to speak.
func (s *stepper) justAborted() bool { return !passed(s.now, s.aborted, unaskedFor) }

// listenLater lets what is told go on. What the microphone hears meanwhile is
// before this listening, which begins when all is told: with the listen start
// that a robot in auto mode then sends, and by itself in realtime. A robot that
// was connecting when it was told to speak has refused to; by now it can.
func (s *stepper) listenLater(mode xiaozhi.Mode) {
	s.mode, s.opens, s.listening = mode, true, false
	s.understood = s.now
	s.woken = time.Time{} // it is being told something already
	if s.phase == speaking {
		s.do(startAgain{})
	}
	s.settle()
}

// openUp opens a microphone to us that has waited until all was told.
func (s *stepper) openUp() {
	s.listening, s.opens = s.listening || s.opens, false
}

// show puts something on the robot's screen, whatever it is doing.
func (s *stepper) show(in show) {
	s.do(send{in.alert})
	if in.notice != "" {
		s.do(publish{event.NotificationChanged{ID: in.notice, State: agent.NoticeShown}})
	}
}

func (s *stepper) close(why string) {
	if s.turn {
		s.answered(agent.AnswerClosed)
		s.cancelled(false)
		if !s.begun && s.telling.text != "" {
			s.toSay = append([]telling{s.telling}, s.toSay...)
		}
	}
	s.concludeAll()
	for _, in := range s.early {
		if t, ok := in.(tell); ok {
			s.toSay = append(s.toSay, t.telling)
		}
	}
	s.phase, s.turn, s.early = closing, false, nil
	s.do(closeChannel{why})
}

// tick is the time that due gave.
func (s *stepper) tick() {
	switch {
	case s.phase == greeting:
		if passed(s.now, s.opened, s.timing.hello) {
			s.close("no hello")
		}
		return
	case s.phase == hearing && (s.hasStalled() || passed(s.now, s.began, s.longest)):
		s.utteranceOver()
	case s.asking && !s.askedUntil.IsZero() && !s.now.Before(s.askedUntil):
		s.askedUntil = time.Time{}
		switch s.phase {
		case hearing:
			s.utteranceOver() // too late, but whoever listens to it must end
		case speaking:
			s.do(cutQuestion{}) // nobody can answer it any more
		}
		s.do(answerAsk{agent.Answer{Outcome: agent.AnswerExpired}})
	}
	s.expire()
	if idle := s.idleAt(); !idle.IsZero() && !s.now.Before(idle) {
		s.close("idle")
		return
	}
	if !s.settled && passed(s.now, s.greeted, settleAfter) {
		s.settle()
	}
	if !s.woken.IsZero() && passed(s.now, s.woken, listenAfter) {
		s.greet()
	}
	if !s.introduced.IsZero() && passed(s.now, s.introduced, introduceEvery) {
		s.introduced = s.now
		s.do(introduce{})
	}
	s.sayWaiting()
	if passed(s.now, s.fed, feedEvery) {
		s.do(send{xiaozhi.KeepAlive{}})
	}
}

// idleAt is when a talk in which nothing happens is hung up, and the zero time
// where it is not. A robot that sends events opens its channel again at once,
// and would flap.
func (s *state) idleAt() time.Time {
	if s.idle == 0 || s.turn || s.sensing || s.phase == greeting || s.phase == closing {
		return time.Time{}
	}
	at := s.understood.Add(s.idle)
	if held := s.heldUntil.Add(heldOver); !s.heldUntil.IsZero() && at.Before(held) {
		return held
	}
	return at
}

// hasStalled reports whether the packets of an utterance have stopped, once
// there were any.
func (s *stepper) hasStalled() bool {
	return !s.packetAt.IsZero() && passed(s.now, s.packetAt, s.stalled)
}

func passed(now, from time.Time, d time.Duration) bool { return !now.Before(from.Add(d)) }

// due is when the state needs a tick, and the zero time when it needs none.
func (s *state) due() time.Time {
	switch s.phase {
	case closing:
		return time.Time{}
	case greeting:
		return s.opened.Add(s.timing.hello)
	}
	due := s.fed.Add(feedEvery)
	earliest := func(t time.Time) {
		if !t.IsZero() && t.Before(due) {
			due = t
		}
	}
	if s.phase == hearing {
		if !s.packetAt.IsZero() {
			earliest(s.packetAt.Add(s.stalled))
		}
		earliest(s.began.Add(s.longest))
	}
	if s.asking {
		earliest(s.askedUntil)
	}
	s.expires(earliest)
	if !s.settled {
		earliest(s.greeted.Add(settleAfter))
	}
	if !s.woken.IsZero() {
		earliest(s.woken.Add(listenAfter))
	}
	if !s.introduced.IsZero() {
		earliest(s.introduced.Add(introduceEvery))
	}
	if !s.turn && s.settled {
		for _, t := range s.toSay {
			earliest(s.saidFrom(t))
		}
	}
	earliest(s.idleAt())
	return due
}
