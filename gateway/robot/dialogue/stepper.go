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

// emit appends effects, and records the time of a Send and the effect of a ResetInput in the state.
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
	if !s.now.Before(s.queue.openerUntil) { // the person who has opened the channel has not spoken in time
		s.queue.openerUntil = time.Time{}
	}
	s.turn = turnState{active: true, announcement: t.Announcement}
	s.channel.hangsUp = s.channel.hangsUp && t.Announcement.canYield()
	s.mic.resumeAwaited = time.Time{}
	if sound := t.Announcement.Sound; t.Announcement.isSpeech() || sound != nil && sound != s.music.sound {
		s.turn.unsolicitedUntil = s.now.Add(unsolicitedFor)
	}
	s.phase = thinking
	s.emit(BeginTurn{t})
}

// resumeListening enters phase ready if the microphone is still open, and phase quiet if not.
func (s *stepper) resumeListening() {
	s.phase = quiet
	if s.mic.listening {
		s.phase = ready
		s.emit(ResetInput{}, Publish{event.ListeningStarted{Mode: string(s.mic.mode)}})
	}
}

// restAfterSpeech enters the phase after a turn with speech: ready in realtime mode, where the microphone
// was never closed, otherwise quiet.
func (s *stepper) restAfterSpeech() {
	s.phase = quiet
	if s.mic.mode == xiaozhi.Auto && s.mic.open {
		s.mic.resumeAwaited = s.now
	}
	if s.mic.mode == xiaozhi.Realtime && s.mic.listening {
		s.resumeListening()
	}
}

// restOrListen enters the phase after a turn. A robot that has not spoken during the turn still listens,
// and sends no listen start.
func (s *stepper) restOrListen(spoke bool) {
	if spoke || s.mic.mode == xiaozhi.Manual {
		s.restAfterSpeech()
	} else {
		s.resumeListening()
	}
}

// leaveHearing finishes the utterance under way because of another event. Otherwise its recognizer would
// wait forever.
func (s *stepper) leaveHearing() {
	if s.phase == hearing {
		s.emit(FinishUtterance{})
	}
}

// endUtterance finishes the utterance under way. The turn then posts its transcript.
func (s *stepper) endUtterance() {
	if s.phase == hearing {
		s.phase = thinking
		s.emit(FinishUtterance{})
	}
}

// beginUtterance begins an utterance. In realtime mode it first cancels the turn under way, if speech may
// interrupt that turn. It then begins the utterance only if the phase is ready.
func (s *stepper) beginUtterance() {
	if s.isInterruptible() {
		s.cancel(false)
		s.phase = ready
		s.emit(Publish{event.ListeningStarted{Mode: string(s.mic.mode)}})
	}
	if s.phase != ready {
		return
	}
	s.mic.utteranceBegan, s.mic.packetAt = s.now, s.now
	if s.question.isWaiting() {
		s.phase = hearing
		s.emit(StartAnswer{})
		return
	}
	s.beginTurn(TurnStart{Utterance: true, Aloud: !s.mic.excused})
	s.phase = hearing
}

// publishQuestion publishes the question that waits for an answer, once.
func (s *stepper) publishQuestion() {
	if s.question.isWaiting() && !s.question.published {
		s.question.published = true
		s.emit(Publish{event.Asked{ID: s.question.asked.ID, Text: s.question.asked.Text}})
	}
}

// closeQuestion ends the turn's question, and publishes its outcome if the question was published.
func (s *stepper) closeQuestion(outcome agent.Outcome) {
	if s.question.published {
		s.emit(Publish{event.Answered{ID: s.question.asked.ID, Answer: string(outcome)}})
	}
	s.question = questionState{}
	s.turn.lastSpoken = "" // if the turn asks the same question again, people must hear it again to answer
}

// endInquiry reports e as the ending of the appliance's question, if the turn asks such a question. The
// channel counts as active now, so that the person who has answered gets time to continue.
func (s *stepper) endInquiry(e Ending) {
	if s.turn.announcement.Question == nil {
		return
	}
	s.emit(EndInquiry{s.turn.announcement.Question, e})
	s.turn.announcement, s.channel.activeAt = Announcement{}, s.now
}

// endWaiting removes the appliance's questions that match from the queue, and reports e as the ending of
// each.
func (s *stepper) endWaiting(e Ending, match func(*Question) bool) {
	for _, a := range s.queue.remove(func(a Announcement) bool { return a.Question != nil && match(a.Question) }) {
		s.emit(EndInquiry{a.Question, e})
	}
}

// withoutAnswer returns the ending of a question that nobody has answered.
func withoutAnswer(o agent.Outcome) Ending { return Ending{Answer: agent.Answer{Outcome: o}} }

// endSound publishes the end of the sound that the turn plays, if the sound has begun, or that the music pauses or
// has stopped. It reports whether the turn plays a sound or music: then no end of a turn is published.
func (s *stepper) endSound(end string) bool {
	sound := s.turn.announcement.Sound
	switch {
	case sound == nil:
		return false
	case sound.Music == nil && s.turn.begun:
		s.emit(Publish{event.SoundEnded{Name: sound.Name, End: end}})
	case end == event.EndCancelled && s.playsMusic() && s.turn.begun:
		s.emit(Publish{event.Music{Name: sound.Name, State: event.MusicPaused}})
	case end != event.EndCancelled && s.playsMusic():
		s.forgetMusic(s.turn.reason)
	}
	return true
}

// forgetMusic ends the music, but not a turn that plays it. reason is why the music could not be played on; people
// then hear a phrase.
func (s *stepper) forgetMusic(reason string) {
	music := s.music
	s.music = musicState{}
	if music.begun || reason != "" {
		s.emit(Publish{event.Music{Name: music.sound.Name, State: event.MusicStopped, Reason: reason}})
	}
	if reason != "" {
		s.queue.push(Announcement{Phrase: PhraseMusic})
	}
}

// stopMusic ends the music, and the turn that plays it.
func (s *stepper) stopMusic() {
	playing := s.playsMusic()
	s.forgetMusic("")
	if playing {
		s.halt(false)
	}
}

// endAnnouncement clears the turn's announcement. If the announcement is a sentence, endAnnouncement publishes
// that the sentence was spoken, or, if reason is not empty, why it could not be spoken. A notification always
// counts as spoken.
func (s *stepper) endAnnouncement(reason string) {
	if s.turn.announcement.Notice != "" {
		s.emit(Publish{event.NotificationChanged{ID: s.turn.announcement.Notice, State: notice.Spoken}})
	} else if s.turn.announcement.Text != "" {
		s.endSay(s.turn.announcement, reason)
	}
	s.turn.announcement = Announcement{}
}

// endSay deletes a sentence, if it is stored, and publishes that it was spoken, or why it was not.
func (s *stepper) endSay(a Announcement, reason string) {
	if a.Command != "" {
		s.emit(ForgetCommand{a.Command})
	}
	for _, e := range SayEnded(a, reason) {
		s.emit(Publish{e})
	}
}

// SayEnded returns the events for the end of a sentence. reason says why the sentence could not be spoken; it
// is empty if the sentence was spoken. The events include an event.Command only if the sentence was stored or
// could not be spoken.
func SayEnded(a Announcement, reason string) []event.Event {
	if reason != "" {
		return []event.Event{event.Command{Thing: CommandSay, State: event.CommandRejected, Reason: reason},
			event.Speech{Text: a.Text, State: event.SpeechFailed, Reason: reason}}
	}
	spoken := event.Speech{Text: a.Text, State: event.SpeechSpoken}
	if a.Command == "" {
		return []event.Event{spoken}
	}
	return []event.Event{event.Command{Thing: CommandSay, State: event.CommandDone}, spoken}
}

// emitCancel emits the effects that cancel the turn under way. It does not change the state.
func (s *stepper) emitCancel(abort bool) {
	s.emit(CancelTurn{abort})
	if !s.endSound(event.EndCancelled) {
		s.emit(Publish{event.TurnEnded{End: event.EndCancelled}})
	}
}

// stopSpeech records that tts stop ends the robot's speech, if the robot is speaking; see expectResume.
func (s *stepper) stopSpeech() {
	if s.phase == speaking {
		s.mic.expectResume(s.now)
	}
}

// cancel cancels the turn under way and clears its state. abort is as for CancelTurn.
func (s *stepper) cancel(abort bool) {
	s.stopSpeech()
	s.closeQuestion(agent.AnswerClosed)
	s.emitCancel(abort)
	s.endInquiry(withoutAnswer(agent.AnswerClosed))
	s.channel.sentAt = s.now
	if s.turn.begun {
		s.endAnnouncement("") // the person who interrupted the announcement has heard enough of it
	}
	s.endOpenerTime(s.now)
	s.openMicrophone()
	s.turn, s.channel.hangsUp = turnState{}, false
	s.channel.activeAt = s.now // the person gets time to speak
}

// halt cancels the turn under way and enters the phase after it.
func (s *stepper) halt(abort bool) {
	spoke := s.phase == speaking
	s.cancel(abort)
	s.restOrListen(spoke)
}

// interrupt cancels the turn under way, if there is one, and enters the phase after it. If abort is set, it
// sends tts stop even without a turn. The waiting announcements let the person who interrupts speak first.
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

// stopAsking cancels the turn, which asks people a question for the appliance, because the question has
// expired or was withdrawn. Nobody has interrupted the turn, so the waiting announcements are spoken at
// once, unless somebody is answering already.
func (s *stepper) stopAsking() {
	if s.phase == hearing {
		s.queue.yieldsUntil = s.now.Add(yieldFor)
	}
	s.halt(false)
	s.speakNext()
}

// speakNext begins the first waiting announcement whose time has come (see speakableFrom), if no turn but the music
// is under way and the robot has left its connecting state. Without waiting announcements it begins the music. It
// rejects expired commands at the front of the queue.
func (s *stepper) speakNext() {
	if s.turn.active && !s.playsMusic() || !s.channel.settled {
		return
	}
	for len(s.queue.waiting) > 0 && s.queue.waiting[0].Command != "" && !s.now.Before(s.queue.waiting[0].Expires) {
		s.endSay(s.queue.waiting[0], ReasonExpired)
		s.queue.waiting = s.queue.waiting[1:]
	}
	next := slices.IndexFunc(s.queue.waiting, func(a Announcement) bool { return !s.now.Before(s.queue.speakableFrom(a)) })
	if next < 0 {
		if s.music.sound != nil && !s.turn.active && len(s.queue.waiting) == 0 && !s.now.Before(s.musicFrom()) {
			s.beginTurn(TurnStart{Announcement: Announcement{Sound: s.music.sound}})
		}
		return
	}
	if s.turn.active {
		s.halt(false) // the music
	}
	first := s.queue.waiting[next]
	s.queue.waiting = slices.Delete(slices.Clone(s.queue.waiting), next, next+1)
	if first.canYield() {
		s.queue.openerUntil = time.Time{}
	}
	s.beginTurn(TurnStart{Announcement: first})
}

// markSettled records that the robot has left its connecting state, and begins the waiting announcements.
func (s *stepper) markSettled() {
	s.channel.settled = true
	s.speakNext()
}

// greet greets a person who has said the wake word. It is called when the microphone opens, or after
// listenAfter if the microphone has not opened by then.
func (s *stepper) greet() {
	woken := !s.mic.wokenAt.IsZero()
	s.mic.wokenAt = time.Time{}
	if woken && !s.turn.active {
		s.beginTurn(TurnStart{Announcement: Announcement{Phrase: PhraseAwake}})
	}
}

// close closes the channel. It ends all questions. Announcements that were not spoken stay in the queue,
// where Unspoken finds them.
func (s *stepper) close(why string) {
	s.forgetMusic("")
	if s.turn.active {
		s.closeQuestion(agent.AnswerClosed)
		s.emitCancel(false)
		switch a := s.turn.announcement; {
		case a.Text != "" && !s.turn.begun:
			s.queue.pushFront(a)
		case a.Text != "" && a.Notice == "" && a.Command == "":
			s.emit(Publish{event.Speech{Text: a.Text, State: event.SpeechFailed, Reason: "the robot closed its channel before the end"}})
		}
	}
	offline := Ending{Err: ErrOffline}
	s.endInquiry(offline)
	s.endWaiting(offline, func(*Question) bool { return true })
	for _, in := range s.queue.early {
		if early, ok := in.(Announce); ok {
			s.queue.push(early.Announcement)
		}
	}
	s.phase, s.turn, s.queue.early = closing, turnState{}, nil
	s.emit(CloseChannel{why})
}

// endIfDone ends the turn if all its speech is queued and the robot has played it.
func (s *stepper) endIfDone() {
	if !s.turn.active || !s.turn.done || !s.turn.drained {
		return
	}
	spoke, announced, begun, end := s.phase == speaking, s.turn.announcement.Text != "", s.turn.begun, s.turn.end
	answered := !s.turn.announcement.isSpeech() && s.turn.announcement.Sound == nil // somebody has spoken to the robot
	s.leaveHearing()
	s.stopSpeech()
	s.closeQuestion(agent.AnswerClosed)
	unanswered := withoutAnswer(agent.AnswerClosed)
	if s.turn.reason != "" {
		unanswered = Ending{Err: errors.New("ask: " + s.turn.reason)}
	}
	s.endInquiry(unanswered)
	s.endOpenerTime(s.now)
	s.openMicrophone()
	s.emit(EndTurn{end, s.turn.reason})
	s.endSound(end)
	if end != event.EndFailed || begun { // an announcement is not repeated once people have heard its beginning
		s.endAnnouncement(s.turn.reason)
	}
	s.turn, s.queue.yieldsUntil, s.music.from = turnState{}, time.Time{}, time.Time{}
	if answered && s.music.begun {
		s.music.from = s.now.Add(yieldFor)
	}
	if spoke && (announced || s.mic.misheard == 0) {
		s.channel.activeAt = s.now // people get time to answer
	}
	s.channel.hangsUp = s.channel.hangsUp || end == event.EndHangUp
	switch {
	case end == event.EndSleep:
		s.close(end)
	// Announcements that can yield keep the channel open: they might otherwise be postponed in each session.
	case s.channel.hangsUp && !slices.ContainsFunc(s.queue.waiting, Announcement.canYield):
		s.close(event.EndHangUp)
	default:
		s.restOrListen(spoke)
		s.speakNext()
	}
}
