package dialogue

import (
	"errors"
	"slices"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device/xiaozhi"
	"perch/event"
)

// emit adds effects.
func (s *stepper) emit(effects ...Effect) {
	for _, e := range effects {
		switch e.(type) {
		case Send:
			s.channel.sentAt = s.now
		case ResetInput:
			s.mic.voiced = false
		}
	}
	s.effects = append(s.effects, effects...)
}

// beginTurn starts a turn.
func (s *stepper) beginTurn(t TurnStart) {
	if !s.now.Before(s.queue.openerUntil) { // the time to speak first is over
		s.queue.openerUntil = time.Time{}
	}
	s.turn = turnState{active: true, announcement: t.Announcement}
	s.channel.hangsUp = s.channel.hangsUp && t.Announcement.canYield()
	s.mic.resumeAwaited = time.Time{}
	if t.Announcement.isSpeech() || t.Announcement.Sound != nil {
		s.turn.unsolicitedUntil = s.now.Add(unsolicitedFor)
	}
	s.phase = thinking
	s.emit(BeginTurn{t})
}

// resumeListening goes on listening if the microphone is still open.
func (s *stepper) resumeListening() {
	s.phase = quiet
	if s.mic.listening {
		s.phase = ready
		s.emit(ResetInput{}, Publish{event.ListeningStarted{Mode: string(s.mic.mode)}})
	}
}

// rest follows a turn that the robot has spoken in: in realtime the microphone was never closed.
func (s *stepper) rest() {
	s.phase = quiet
	if s.mic.mode == xiaozhi.Auto && s.mic.open {
		s.mic.resumeAwaited = s.now
	}
	if s.mic.mode == xiaozhi.Realtime && s.mic.listening {
		s.resumeListening()
	}
}

// restOrListen follows a turn. A robot that was never made to speak still listens, and sends no
// listen start.
func (s *stepper) restOrListen(spoke bool) {
	if spoke || s.mic.mode == xiaozhi.Manual {
		s.rest()
	} else {
		s.resumeListening()
	}
}

// leaveHearing finishes an utterance that something else has come before, so that its
// recognizer does not wait for ever.
func (s *stepper) leaveHearing() {
	if s.phase == hearing {
		s.emit(FinishUtterance{})
	}
}

// endUtterance lets the recognizer finish. The turn then posts the transcript.
func (s *stepper) endUtterance() {
	if s.phase == hearing {
		s.phase = thinking
		s.emit(FinishUtterance{})
	}
}

// beginUtterance begins an utterance. In realtime it stops our speech or our thinking.
func (s *stepper) beginUtterance() {
	if s.interruptible() {
		s.cancel(false)
		s.phase = ready
		s.emit(Publish{event.ListeningStarted{Mode: string(s.mic.mode)}})
	}
	if s.phase != ready {
		return
	}
	s.mic.utteranceBegan, s.mic.packetAt = s.now, s.now
	if s.question.waits() {
		s.phase = hearing
		s.emit(StartAnswer{})
		return
	}
	s.beginTurn(TurnStart{Utterance: true, Aloud: s.mic.misheard == 0})
	s.phase = hearing
}

// publishQuestion publishes the question that waits for an answer, once.
func (s *stepper) publishQuestion() {
	if s.question.waits() && !s.question.published {
		s.question.published = true
		s.emit(Publish{event.Asked{ID: s.question.asked.ID, Text: s.question.asked.Text}})
	}
}

// closeQuestion ends the turn's question with an outcome.
func (s *stepper) closeQuestion(outcome agent.Outcome) {
	if s.question.published {
		s.emit(Publish{event.Answered{ID: s.question.asked.ID, Answer: string(outcome)}})
	}
	s.question = questionState{}
	s.turn.lastSpoken = "" // the same question once more is another
}

// endInquiry returns the end of the appliance's question that is being put. A person who has
// answered gets time to talk on.
func (s *stepper) endInquiry(e Ending) {
	if s.turn.announcement.Question == nil {
		return
	}
	s.emit(EndInquiry{s.turn.announcement.Question, e})
	s.turn.announcement, s.channel.activeAt = Announcement{}, s.now
}

// endWaiting ends questions of the appliance that wait for their turn.
func (s *stepper) endWaiting(e Ending, which func(*Question) bool) {
	for _, a := range s.queue.remove(func(a Announcement) bool { return a.Question != nil && which(a.Question) }) {
		s.emit(EndInquiry{a.Question, e})
	}
}

// endedBy returns the end of a question without an answer.
func endedBy(o agent.Outcome) Ending { return Ending{Answer: agent.Answer{Outcome: o}} }

// endSound publishes the end of a sound that had begun. It reports whether the turn is a sound:
// then no end of a turn is published.
func (s *stepper) endSound(end string) bool {
	if s.turn.announcement.Sound != nil && s.turn.begun {
		s.emit(Publish{event.SoundEnded{Name: s.turn.announcement.Sound.Name, End: end}})
	}
	return s.turn.announcement.Sound != nil
}

// endAnnouncement reports that the turn's announcement has been spoken.
func (s *stepper) endAnnouncement() {
	switch {
	case s.turn.announcement.Notice != "":
		s.emit(Publish{event.NotificationChanged{ID: s.turn.announcement.Notice, State: notice.Spoken}})
	case s.turn.announcement.Command != "":
		s.emit(ForgetCommand{s.turn.announcement.Command}, Publish{event.Command{Thing: CommandSay, State: event.CommandDone}})
	}
	s.turn.announcement = Announcement{}
}

// publishCancelled stops the turn under way, and publishes that.
func (s *stepper) publishCancelled(abort bool) {
	s.emit(CancelTurn{abort})
	if !s.endSound(event.EndCancelled) {
		s.emit(Publish{event.TurnEnded{End: event.EndCancelled}})
	}
}

// stopSpeech records that a tts stop ends the robot's speech. Outside push to talk it then
// sends listen start by itself, once it has played all.
func (s *stepper) stopSpeech() {
	if s.phase == speaking {
		s.mic.expectResume(s.now)
	}
}

// cancel is the only way a turn is stopped. Speech that has begun is ended with tts stop; so is
// an abort, always.
func (s *stepper) cancel(abort bool) {
	s.stopSpeech()
	s.closeQuestion(agent.AnswerClosed)
	s.publishCancelled(abort)
	s.endInquiry(endedBy(agent.AnswerClosed))
	s.channel.sentAt = s.now
	if s.turn.begun {
		s.endAnnouncement() // the person who cut it off has heard it
	}
	s.openerHadTurn(s.now)
	s.openMicrophone()
	s.turn, s.channel.hangsUp = turnState{}, false
	s.channel.activeAt = s.now // and gets the time to speak
}

// halt stops the turn under way and leaves the robot at rest.
func (s *stepper) halt(abort bool) {
	spoke := s.phase == speaking
	s.cancel(abort)
	s.restOrListen(spoke)
}

// interrupt stops a turn and leaves the robot at rest. Announcements that wait let the person
// who interrupts speak first.
func (s *stepper) interrupt(abort bool) {
	if s.turn.active && !abort {
		s.requeue()
	}
	if s.turn.active {
		s.halt(abort)
	} else if abort {
		s.emit(Send{xiaozhi.TTSStop{}})
	}
	s.queue.yieldsUntil = s.now.Add(resumeWithin)
	if s.phase == ready {
		s.queue.yieldsUntil = s.now.Add(yieldFor)
	}
}

// stopAsking stops a question of the appliance being put. It was not interrupted, so what waits
// is spoken at once, unless somebody is answering already.
func (s *stepper) stopAsking() {
	if s.phase == hearing {
		s.queue.yieldsUntil = s.now.Add(yieldFor)
	}
	s.halt(false)
	s.speakNext()
}

// speakNext begins to speak what has waited for a turn to end, unless somebody has just
// interrupted to speak, or has opened the channel to speak.
func (s *stepper) speakNext() {
	if s.turn.active || !s.channel.settled {
		return
	}
	for len(s.queue.waiting) > 0 && s.queue.waiting[0].Command != "" && !s.now.Before(s.queue.waiting[0].Expires) {
		s.emit(ForgetCommand{s.queue.waiting[0].Command},
			Publish{event.Command{Thing: CommandSay, State: event.CommandRejected, Reason: ReasonExpired}})
		s.queue.waiting = s.queue.waiting[1:]
	}
	next := slices.IndexFunc(s.queue.waiting, func(a Announcement) bool { return !s.now.Before(s.queue.speakableFrom(a)) })
	if next < 0 {
		return
	}
	first := s.queue.waiting[next]
	s.queue.waiting = slices.Delete(slices.Clone(s.queue.waiting), next, next+1)
	if first.canYield() {
		s.queue.openerUntil = time.Time{}
	}
	s.beginTurn(TurnStart{Announcement: first})
}

// connected records that the robot has left its connecting state. What has waited is spoken.
func (s *stepper) connected() {
	s.channel.settled = true
	s.speakNext()
}

// greet answers a wake word, once the open microphone shows a connected robot.
func (s *stepper) greet() {
	woken := !s.mic.wokenAt.IsZero()
	s.mic.wokenAt = time.Time{}
	if woken && !s.turn.active {
		s.beginTurn(TurnStart{Announcement: Announcement{Phrase: PhraseAwake}})
	}
}

// close hangs up. It ends every question, and leaves in the queue what was not spoken.
func (s *stepper) close(why string) {
	if s.turn.active {
		s.closeQuestion(agent.AnswerClosed)
		s.publishCancelled(false)
		if !s.turn.begun && s.turn.announcement.Text != "" {
			s.queue.pushFront(s.turn.announcement)
		}
	}
	gone := Ending{Err: ErrOffline}
	s.endInquiry(gone)
	s.endWaiting(gone, func(*Question) bool { return true })
	for _, in := range s.queue.early {
		if early, ok := in.(Announce); ok {
			s.queue.push(early.Announcement)
		}
	}
	s.phase, s.turn, s.queue.early = closing, turnState{}, nil
	s.emit(CloseChannel{why})
}

// endIfDone ends a turn whose brain has finished and whose speech was played.
func (s *stepper) endIfDone() {
	if !s.turn.active || !s.turn.done || !s.turn.drained {
		return
	}
	spoke, announced, end := s.phase == speaking, s.turn.announcement.Text != "", s.turn.end
	s.leaveHearing()
	s.stopSpeech()
	s.closeQuestion(agent.AnswerClosed)
	unanswered := endedBy(agent.AnswerClosed)
	if s.turn.reason != "" {
		unanswered = Ending{Err: errors.New("ask: " + s.turn.reason)}
	}
	s.endInquiry(unanswered)
	s.openerHadTurn(s.now)
	s.openMicrophone()
	s.emit(EndTurn{end, s.turn.reason})
	s.endSound(end)
	if end != event.EndFailed {
		s.endAnnouncement()
	}
	s.turn, s.queue.yieldsUntil = turnState{}, time.Time{}
	if spoke && (announced || s.mic.misheard == 0) {
		s.channel.activeAt = s.now // people get their time to answer after we have spoken
	}
	s.channel.hangsUp = s.channel.hangsUp || end == event.EndHangUp
	switch {
	case end == event.EndSleep:
		s.close(end)
	case s.channel.hangsUp && !slices.ContainsFunc(s.queue.waiting, Announcement.canYield): // else it would wait from talk to talk
		s.close(event.EndHangUp)
	default:
		s.restOrListen(spoke)
		s.speakNext()
	}
}
