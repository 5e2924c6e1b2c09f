package robot

import (
	"slices"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
)

// command is what the appliance wants of the robot.
func (s *stepper) command(in input) {
	switch in := in.(type) {
	case playSound:
		s.playSound(in)
		return
	case ask:
		s.ask(in.about)
		return
	case withdraw:
		s.withdraw(in.about)
		return
	}
	if s.phase == greeting {
		if _, quiet := in.(abort); !quiet && len(s.queue.early) < mostEarly {
			s.queue.early = append(slices.Clip(s.queue.early), in)
		}
		return
	}
	switch in := in.(type) {
	case announce:
		s.announce(in.announcement)
	case showAlert:
		s.showAlert(in)
	case showEmotion:
		s.do(send{xiaozhi.LLM{Emotion: in.emotion.Name, Text: in.emotion.Emoji}},
			publish{event.Emotion{Name: in.emotion.Name, Emoji: in.emotion.Emoji}})
	case injectText:
		s.interrupt(false)
		s.begin(turnStart{text: in.text})
	case abort:
		s.interrupt(true)
	case collectCommands:
		s.do(collectWaiting{})
	case holdChannel:
		s.channel.heldUntil = in.until
	case decideQuestion:
		s.decideQuestion(in)
	case reboot:
		s.do(send{xiaozhi.Reboot{}})
	}
}

// announce speaks something at once, or after the turn under way. An urgent
// announcement comes before all others and waits for nothing but a question: to
// cut that off would answer it.
func (s *stepper) announce(a announcement) {
	if a.notice != "" || a.command != "" {
		same := func(b announcement) bool { return b.notice == a.notice && b.command == a.command }
		if same(s.turn.announcement) {
			return // it is being spoken
		}
		s.queue.remove(same)
	}
	switch waiting := len(s.queue.waiting); {
	case waiting >= mostQueued && a.notice == "":
		s.do(publish{event.Command{Thing: commandSay, State: event.CommandRejected, Reason: "too much waits to be said"}})
	case waiting >= 2*mostQueued: // a notification is kept elsewhere, and offered again at the next hello
	case a.urgent:
		if s.channel.settled && s.turn.active && !s.question.published {
			s.preempt()
		}
		s.queue.pushFront(a)
		s.queue.yieldsUntil = time.Time{}
	default:
		s.queue.push(a)
	}
	s.sayWaiting()
}

// preempt stops the turn under way for something more urgent. Its own
// announcement is spoken anew afterwards: nobody has asked the robot to be quiet.
func (s *stepper) preempt() {
	if s.turn.announcement.isSpeech() {
		s.queue.pushFront(s.turn.announcement)
		s.turn.announcement = announcement{}
	}
	s.interrupt(false)
}

// sayWaiting says what has waited for a turn to end, unless somebody has just
// interrupted to speak, or has opened the talk to.
func (s *stepper) sayWaiting() {
	if s.turn.active || !s.channel.settled {
		return
	}
	for len(s.queue.waiting) > 0 && s.queue.waiting[0].command != "" && !s.now.Before(s.queue.waiting[0].expires) {
		s.do(forgetCommand{s.queue.waiting[0].command},
			publish{event.Command{Thing: commandSay, State: event.CommandRejected, Reason: waitedTooLong}})
		s.queue.waiting = s.queue.waiting[1:]
	}
	next := slices.IndexFunc(s.queue.waiting, func(t announcement) bool { return !s.now.Before(s.speakableFrom(t)) })
	if next < 0 {
		return
	}
	first := s.queue.waiting[next]
	s.queue.waiting = slices.Delete(slices.Clone(s.queue.waiting), next, next+1)
	if first.canYield() {
		s.queue.openerUntil = time.Time{}
	}
	s.begin(turnStart{announcement: first})
}

// saidFrom is when something that waits may be said, as far as others who want
// to speak are concerned.
func (s *state) speakableFrom(t announcement) time.Time {
	if t.canYield() && s.queue.openerUntil.After(s.queue.yieldsUntil) {
		return s.queue.openerUntil
	}
	return s.queue.yieldsUntil
}

// unaskedYet reports whether the turn under way is one that we have just begun
// by ourselves, and nobody has interrupted.
func (s *stepper) unsolicited() bool {
	return s.now.Before(s.turn.unsolicitedUntil) && !s.justAborted()
}

// justAborted reports whether somebody has told us to be quiet a moment ago: a
// microphone that opens then is opened to speak.
func (s *stepper) justAborted() bool { return !passed(s.now, s.mic.abortedAt, unsolicitedFor) }

// listenLater lets what is told go on. What the microphone hears meanwhile is
// before this listening, which begins when all is told: with the listen start
// that a robot in auto mode then sends, and by itself in realtime. A robot that
// was connecting when it was told to speak has refused to; by now it can.
func (s *stepper) listenLater(mode xiaozhi.Mode) {
	s.mic.mode, s.turn.listensAfter, s.mic.listening = mode, true, false
	s.channel.activeAt = s.now
	s.mic.wokenAt = time.Time{} // it is being told something already
	if s.phase == speaking {
		s.do(restartSpeech{})
	}
	s.settle()
}

// openUp opens a microphone to us that has waited until all was told.
func (s *stepper) openMicrophone() {
	s.mic.listening, s.turn.listensAfter = s.mic.listening || s.turn.listensAfter, false
}

// show puts something on the robot's screen, whatever it is doing.
func (s *stepper) showAlert(in showAlert) {
	s.do(send{in.alert})
	if in.notice != "" {
		s.do(publish{event.NotificationChanged{ID: in.notice, State: agent.NoticeShown}})
	}
}

func (s *stepper) close(why string) {
	if s.turn.active {
		s.closeQuestion(agent.AnswerClosed)
		s.cancelled(false)
		if !s.turn.begun && s.turn.announcement.text != "" {
			s.queue.pushFront(s.turn.announcement)
		}
	}
	s.concludeAll()
	for _, in := range s.queue.early {
		if early, ok := in.(announce); ok {
			s.queue.push(early.announcement)
		}
	}
	s.phase, s.turn, s.queue.early = closing, turnState{}, nil
	s.do(closeChannel{why})
}

// tick is the time that due gave.
func (s *stepper) tick() {
	switch {
	case s.phase == greeting:
		if passed(s.now, s.channel.opened, s.limits.hello) {
			s.close("no hello")
		}
		return
	case s.phase == hearing && (s.hasStalled() || passed(s.now, s.mic.utteranceBegan, s.limits.longest)):
		s.utteranceOver()
	case s.question.waits() && !s.question.until.IsZero() && !s.now.Before(s.question.until):
		s.question.until = time.Time{}
		switch s.phase {
		case hearing:
			s.utteranceOver() // too late, but whoever listens to it must end
		case speaking:
			s.do(cutQuestion{}) // nobody can answer it any more
		}
		s.do(answerQuestion{agent.Answer{Outcome: agent.AnswerExpired}})
	}
	s.expire()
	if idle := s.idleAt(); !idle.IsZero() && !s.now.Before(idle) {
		s.close("idle")
		return
	}
	if !s.channel.settled && passed(s.now, s.channel.greeted, settleAfter) {
		s.settle()
	}
	if !s.mic.wokenAt.IsZero() && passed(s.now, s.mic.wokenAt, listenAfter) {
		s.greet()
	}
	if !s.channel.introducedAt.IsZero() && passed(s.now, s.channel.introducedAt, introduceEvery) {
		s.channel.introducedAt = s.now
		s.do(introduce{})
	}
	s.sayWaiting()
	if passed(s.now, s.channel.sentAt, feedEvery) {
		s.do(send{xiaozhi.KeepAlive{}})
	}
}

// idleAt is when a talk in which nothing happens is hung up, and the zero time
// where it is not. A robot that sends events opens its channel again at once,
// and would flap.
func (s *state) idleAt() time.Time {
	if s.limits.idle == 0 || s.turn.active || s.channel.sensing || s.phase == greeting || s.phase == closing {
		return time.Time{}
	}
	at := s.channel.activeAt.Add(s.limits.idle)
	if held := s.channel.heldUntil.Add(holdMargin); !s.channel.heldUntil.IsZero() && at.Before(held) {
		return held
	}
	return at
}

// hasStalled reports whether the packets of an utterance have stopped, once
// there were any.
func (s *stepper) hasStalled() bool {
	return !s.mic.packetAt.IsZero() && passed(s.now, s.mic.packetAt, s.limits.stalled)
}

func passed(now, from time.Time, d time.Duration) bool { return !now.Before(from.Add(d)) }

// due is when the state needs a tick, and the zero time when it needs none.
func (s *state) due() time.Time {
	switch s.phase {
	case closing:
		return time.Time{}
	case greeting:
		return s.channel.opened.Add(s.limits.hello)
	}
	due := s.channel.sentAt.Add(feedEvery)
	earliest := func(t time.Time) {
		if !t.IsZero() && t.Before(due) {
			due = t
		}
	}
	if s.phase == hearing {
		if !s.mic.packetAt.IsZero() {
			earliest(s.mic.packetAt.Add(s.limits.stalled))
		}
		earliest(s.mic.utteranceBegan.Add(s.limits.longest))
	}
	if s.question.waits() {
		earliest(s.question.until)
	}
	s.expires(earliest)
	if !s.channel.settled {
		earliest(s.channel.greeted.Add(settleAfter))
	}
	if !s.mic.wokenAt.IsZero() {
		earliest(s.mic.wokenAt.Add(listenAfter))
	}
	if !s.channel.introducedAt.IsZero() {
		earliest(s.channel.introducedAt.Add(introduceEvery))
	}
	if !s.turn.active && s.channel.settled {
		for _, t := range s.queue.waiting {
			earliest(s.speakableFrom(t))
		}
	}
	earliest(s.idleAt())
	return due
}
