package robot

import (
	"slices"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/limit"
	"perch/plain"
)

// stepper collects the effects of one step.
type stepper struct {
	state
	now     time.Time
	effects []effect
}

func (s *stepper) do(effects ...effect) {
	for _, e := range effects {
		if _, sends := e.(send); sends {
			s.channel.sentAt = s.now
		}
	}
	s.effects = append(s.effects, effects...)
}

// step returns the state after an input, and the effects in order. It is pure.
func step(st state, now time.Time, in input) (state, []effect) {
	s := &stepper{state: st, now: now}
	switch {
	case s.phase == closing:
	case s.phase == greeting && isCommand(in):
		if _, quiet := in.(abort); !quiet && len(s.queue.early) < mostEarly {
			s.queue.early = append(slices.Clip(s.queue.early), in)
		}
	default:
		in.step(s)
	}
	return s.state, s.effects
}

// isCommand reports whether the appliance wants something, which waits for hello.
func isCommand(in input) bool {
	switch in.(type) {
	case announce, showAlert, showEmotion, injectText, abort, holdChannel, collectCommands, decideQuestion, reboot:
		return true
	}
	return false
}

// step takes a message of the robot.
func (in fromRobot) step(s *stepper) {
	if hello, ok := in.message.(xiaozhi.Hello); ok {
		s.hello(hello)
		return
	}
	if s.phase == greeting {
		return // nothing counts before hello
	}
	switch m := in.message.(type) {
	case xiaozhi.ListenStart:
		s.listenStart(m.Mode)
	case xiaozhi.ListenStop:
		s.listenStop()
	case xiaozhi.ListenDetect:
		if s.isTyped(m) {
			s.takeTyped(m.Text)
			return
		}
		s.do(reportWakeText{m.Text})
		s.mic.openedByFace = s.mic.openedByFace || !s.mic.everOpened && m.Text == "face"
		if s.greets && isWakeWord(m.Text) && !s.turn.active {
			s.mic.wokenAt = s.now
		}
	case xiaozhi.Abort:
		// Answered whatever the state: the robot stays in speaking until then.
		s.mic.abortedAt = s.now
		s.requeue()
		s.interrupt(true)
	case xiaozhi.FromMCP:
		s.do(deliverMCP{m.Payload})
	case xiaozhi.Event:
		s.channel.sensing = true
		s.do(reportSensor{m})
		if s.question.waits() && s.question.audible && m.Name == "head_pet_started" {
			s.do(answerQuestion{agent.Answer{Outcome: agent.AnswerTouch}})
		}
		s.settle()
	}
}

// hello is the first message, or a later one that changes what was agreed.
func (s *stepper) hello(m xiaozhi.Hello) {
	first := s.phase == greeting
	s.do(welcome{m, first})
	s.channel.sentAt, s.channel.introducedAt = s.now, time.Time{}
	if m.Features.MCP {
		s.channel.introducedAt = s.now
		s.do(introduce{list: true})
	}
	if first {
		s.phase, s.channel.activeAt, s.channel.greeted = quiet, s.now, s.now
		s.queue.openerUntil = s.now.Add(settleAfter) // by then a person who has opened it has opened the microphone
		s.do(collectWaiting{})
		early := s.queue.early
		s.queue.early = nil
		for _, in := range early {
			in.step(s)
		}
	}
}

// isWakeWord reports whether words have woken a robot, and no other cause.
func isWakeWord(text string) bool {
	return text != "" && text != "face" && text != "head_pet_hold"
}

// settle is the robot out of its connecting state. What has waited is spoken.
func (s *stepper) settle() {
	s.channel.settled = true
	s.sayWaiting()
}

// isTyped reports whether a text was typed and did not wake the robot. Some clients
// mark it. Else a wake word comes first, or together with its sound.
func (s *stepper) isTyped(m xiaozhi.ListenDetect) bool {
	return m.Typed || isWakeWord(m.Text) && s.mic.everOpened && !s.mic.flow.preRoll(s.now)
}

// People type less, and slower.
const typedEvery = 500 * time.Millisecond

// takeTyped takes a text as an utterance: the answer to a question that was put, or
// else a turn of its own, also while we speak.
func (s *stepper) takeTyped(text string) {
	text, err := speakable(plain.Clip(text, limit.Text))
	if err != nil || !passed(s.now, s.mic.typedAt, typedEvery) {
		return
	}
	s.mic.typedAt = s.now
	if !s.question.waits() || !s.question.audible {
		s.interrupt(false)
		s.begin(turnStart{text: text})
		return
	}
	if s.phase == speaking {
		s.do(cutQuestion{})
	}
	s.do(answerQuestion{agent.Answer{Outcome: agent.AnswerGiven, Text: text}})
}

// listenStart opens the microphone. While we speak it is a barge-in where
// somebody pushed to talk, or has just aborted, as the firmware does first. In
// auto mode the robot also sends it after every tts stop, and then
// interrupts nothing that has begun since, as what opens a talk does not
// interrupt an announcement that has just begun. To a question it is the answer,
// once the question has begun to sound.
func (s *stepper) listenStart(mode xiaozhi.Mode) {
	s.yieldToOpener()
	s.mic.everOpened, s.mic.open = true, true
	resumed := !s.now.After(s.mic.resumesUntil) && mode != xiaozhi.Manual
	s.mic.resumesUntil = time.Time{}
	answers := s.question.waits() && s.question.audible
	if s.turn.active && !answers && resumed {
		s.mic.mode, s.mic.listening = mode, true
		return
	}
	if s.turn.active && s.unsolicited() && mode != xiaozhi.Manual {
		s.listenLater(mode)
		return
	}
	if s.turn.active && !answers && s.phase == speaking && mode != xiaozhi.Manual && !s.justAborted() {
		s.keepSpeaking(mode)
		return
	}
	if s.turn.active && !answers {
		s.interrupt(false)
	}
	if s.question.waits() && s.phase == speaking {
		s.do(cutQuestion{})
	}
	if !resumed {
		s.channel.activeAt = s.now // somebody has opened it, to speak
	}
	s.leaveHearing()
	s.mic.resumeAwaited = time.Time{}
	s.mic.mode, s.mic.listening, s.phase = mode, true, ready
	s.do(resetInput{}, publish{event.ListeningStarted{Mode: string(mode)}})
	if mode == xiaozhi.Manual {
		s.speechBegan() // the button is the end-pointer
		s.mic.packetAt = time.Time{}
	}
	s.greet()
	s.settle()
}

// yieldToOpener lets a person speak before announcements if the microphone opens by
// an interruption or for the first time. A face does not speak.
func (s *stepper) yieldToOpener() {
	until := s.now.Add(yieldFor)
	if s.now.Before(s.queue.yieldsUntil) {
		s.queue.yieldsUntil = until
	}
	switch {
	case s.mic.everOpened && !s.now.Before(s.queue.openerUntil): // it is open already
	case s.mic.openedByFace:
		s.queue.openerUntil = time.Time{}
	default:
		s.queue.openerUntil = until
	}
}

// openerHadTurn ends the time for the person who opened the channel. After a
// greeting or a turn that was not understood it begins again.
func (s *stepper) openerHadTurn() {
	switch {
	case s.turn.understood:
		s.queue.openerUntil = time.Time{}
	case !s.queue.openerUntil.IsZero() && s.mic.everOpened && s.mic.misheard <= 1:
		s.queue.openerUntil = s.now.Add(yieldFor)
	}
}

// keepSpeaking lets our speech go on where a client sends no more than that its
// microphone is open. In auto mode what that hears counts once we have spoken.
func (s *stepper) keepSpeaking(mode xiaozhi.Mode) {
	s.mic.mode = mode
	if mode == xiaozhi.Realtime {
		s.mic.listening = true
	} else {
		s.turn.listensAfter = true
	}
	s.settle()
}

// greet answers a wake word, once the open microphone shows a connected robot.
func (s *stepper) greet() {
	woken := !s.mic.wokenAt.IsZero()
	s.mic.wokenAt = time.Time{}
	if woken && !s.turn.active {
		s.begin(turnStart{announcement: announcement{phrase: phraseAwake}})
	}
}

// listenStop ends an utterance in manual mode; the microphone is closed.
func (s *stepper) listenStop() {
	s.mic.listening, s.turn.listensAfter, s.mic.open, s.mic.resumeAwaited = false, false, false, time.Time{}
	if s.phase == hearing {
		s.utteranceOver()
	} else if s.phase == ready {
		s.phase = quiet
	}
}

// speechBegan begins an utterance. In realtime it stops our speech or our thinking.
func (s *stepper) speechBegan() {
	if s.interruptible() {
		s.cancel(false)
		s.phase = ready
		s.do(publish{event.ListeningStarted{Mode: string(s.mic.mode)}})
	}
	if s.phase != ready {
		return
	}
	s.mic.utteranceBegan, s.mic.packetAt = s.now, s.now
	if s.question.waits() {
		s.phase = hearing
		s.do(startAnswer{})
		return
	}
	s.begin(turnStart{utterance: true, aloud: s.mic.misheard == 0})
	s.phase = hearing
}

// interruptible reports whether words stop the turn. They do not while a question
// waits or words are recognized: a person who goes on means the same.
func (s *stepper) interruptible() bool {
	if s.mic.mode != xiaozhi.Realtime || !s.mic.listening || !s.turn.active || s.question.waits() {
		return false
	}
	return s.phase == speaking || s.phase == thinking && s.turn.understood
}

// listens reports whether the end-pointer is to find utterances: in manual mode
// the button does, and outside realtime we do not listen while we speak.
func (s *state) listens() bool {
	switch s.mic.mode {
	case xiaozhi.Manual:
		return false
	case xiaozhi.Realtime:
		return s.mic.listening && s.phase > quiet && s.phase < closing
	}
	return s.phase == ready || s.phase == hearing
}

// utteranceOver lets the recognizer finish. The turn then posts the transcript.
func (s *stepper) utteranceOver() {
	if s.phase == hearing {
		s.phase = thinking
		s.do(finishUtterance{})
	}
}

func (in transcript) step(s *stepper) {
	s.mic.misheard, s.channel.activeAt = 0, s.now
	if !s.question.waits() {
		s.turn.understood = true
		s.do(keepTranscript(in))
	}
	s.do(send{xiaozhi.STT{Text: in.text}}, publish{event.Heard{Text: in.text}})
}

// step takes speech that was not understood. The turn answers the first aloud.
// Later ones are only shown, or a television would keep a robot talking.
func (misheard) step(s *stepper) {
	s.mic.misheard++
	s.do(send{xiaozhi.STT{Text: "…"}}, publish{event.Misheard{}})
	if s.question.waits() && s.phase != hearing { // or the next answer is being spoken already
		s.again()
	}
}

// again goes on listening where the microphone is still open.
func (s *stepper) again() {
	s.phase = quiet
	if s.mic.listening {
		s.phase = ready
		s.do(resetInput{}, publish{event.ListeningStarted{Mode: string(s.mic.mode)}})
	}
}

func (s *stepper) begin(t turnStart) {
	if !s.now.Before(s.queue.openerUntil) { // the time to speak first is over
		s.queue.openerUntil = time.Time{}
	}
	s.turn = turnState{active: true, announcement: t.announcement}
	s.channel.hangsUp = s.channel.hangsUp && t.announcement.canYield()
	s.mic.resumeAwaited = time.Time{}
	if t.announcement.isSpeech() || t.announcement.sound != nil {
		s.turn.unsolicitedUntil = s.now.Add(unsolicitedFor)
	}
	s.phase = thinking
	s.do(beginTurn{t})
}

// interrupt stops a turn and leaves the robot at rest. Announcements
// that wait let the person who interrupts speak first.
func (s *stepper) interrupt(abort bool) {
	if s.turn.active && !abort {
		s.requeue()
	}
	if s.turn.active {
		s.halt(abort)
	} else if abort {
		s.do(send{xiaozhi.TTSStop{}})
	}
	s.queue.yieldsUntil = s.now.Add(resumeWithin)
	if s.phase == ready {
		s.queue.yieldsUntil = s.now.Add(yieldFor)
	}
}

// halt stops the turn under way and leaves the robot at rest.
func (s *stepper) halt(abort bool) {
	spoke := s.phase == speaking
	s.cancel(abort)
	if spoke || s.mic.mode == xiaozhi.Manual {
		s.rest()
	} else {
		s.again() // the robot was never made to speak: it listens, and sends no listen start
	}
}

// requeue puts an announcement back that has not begun to sound.
func (s *stepper) requeue() {
	if !s.turn.begun && !s.question.published && s.turn.announcement.isSpeech() {
		s.turn.announcement.urgent = false // the person who has interrupted it speaks first
		s.queue.pushFront(s.turn.announcement)
		s.turn.announcement = announcement{}
	}
}

// cancel is the only way a turn is stopped. Speech that
// has begun is ended with tts stop; so is an abort, always.
func (s *stepper) cancel(abort bool) {
	s.stopped()
	s.closeQuestion(agent.AnswerClosed)
	s.cancelled(abort)
	s.conclude(endedBy(agent.AnswerClosed))
	s.channel.sentAt = s.now
	if s.turn.begun {
		s.announcementSpoken() // the person who cut it off has heard it
	}
	s.openerHadTurn()
	s.openMicrophone()
	s.turn, s.channel.hangsUp = turnState{}, false
	s.channel.activeAt = s.now // and gets the time to speak
}

// cancelled stops the turn under way, and publishes that.
func (s *stepper) cancelled(abort bool) {
	s.do(cancelTurn{abort})
	if !s.soundEnded(event.EndCancelled) {
		s.do(publish{event.TurnEnded{End: event.EndCancelled}})
	}
}

// announcementSpoken reports that the turn's announcement has been spoken.
func (s *stepper) announcementSpoken() {
	switch {
	case s.turn.announcement.notice != "":
		s.do(publish{event.NotificationChanged{ID: s.turn.announcement.notice, State: notice.Spoken}})
	case s.turn.announcement.command != "":
		s.do(forgetCommand{s.turn.announcement.command}, publish{event.Command{Thing: commandSay, State: event.CommandDone}})
	}
	s.turn.announcement = announcement{}
}

// stopped notes that a tts stop ends the robot's speech. Outside push to talk
// it then sends listen start by itself, once it has played all.
func (s *stepper) stopped() {
	if s.phase == speaking {
		s.expectResume()
	}
}

func (s *stepper) expectResume() {
	if s.mic.mode != xiaozhi.Manual && s.mic.mode != xiaozhi.Realtime {
		s.mic.resumesUntil = s.now.Add(resumeWithin)
	}
}

// leaveHearing finishes an utterance that something else has come before, so
// that its recognizer does not wait for ever.
func (s *stepper) leaveHearing() {
	if s.phase == hearing {
		s.do(finishUtterance{})
	}
}

// rest follows a turn: in realtime the microphone was never closed.
func (s *stepper) rest() {
	s.phase = quiet
	if s.mic.mode == xiaozhi.Auto && s.mic.open {
		s.mic.resumeAwaited = s.now
	}
	if s.mic.mode == xiaozhi.Realtime && s.mic.listening {
		s.phase = ready
		s.do(resetInput{}, publish{event.ListeningStarted{Mode: string(s.mic.mode)}})
	}
}

func (p playbackProgress) step(s *stepper) {
	s.channel.sentAt = s.now
	if !s.turn.active {
		return
	}
	if p.stopped { // a pause that may be over already
		s.expectResume()
	}
	if p.started {
		s.leaveHearing()
		s.phase = speaking
		if !s.turn.begun && !s.turn.unsolicitedUntil.IsZero() {
			s.turn.unsolicitedUntil = s.now.Add(unsolicitedFor)
		}
		if s.mic.mode == xiaozhi.Realtime {
			s.do(resetInput{}) // speech from now on is an interruption
		} else {
			s.mic.listening = false // the robot has closed its microphone
		}
	}
	if p.began {
		s.turn.begun = true
		if sound := s.turn.announcement.sound; sound != nil {
			s.do(publish{event.SoundStarted{Name: sound.name}})
		} else {
			s.do(publish{event.SpeakingStarted{}})
		}
		if s.turn.announcement.notice != "" {
			s.do(publish{event.NotificationChanged{ID: s.turn.announcement.notice, State: notice.Shown}})
		}
	}
	if p.gesture != "" {
		s.do(publish{event.Gesture{Name: p.gesture, By: event.ByModel}})
	}
	for _, text := range p.spoken {
		s.do(publish{event.Said{Text: text}})
		s.turn.lastSpoken = text
		if s.question.waits() && text == s.question.asked.Text {
			s.question.audible = true
			s.publishQuestion()
		}
	}
	if p.paused {
		s.paused(p.askFor)
	}
	if p.drained {
		s.turn.drained = true
		s.maybeEnd()
	}
}

func (in turnFinished) step(s *stepper) {
	s.turn.done, s.turn.end, s.turn.reason = true, in.end, in.reason
	s.maybeEnd()
}

// maybeEnd ends a turn whose brain has finished and whose speech was played.
func (s *stepper) maybeEnd() {
	if !s.turn.active || !s.turn.done || !s.turn.drained {
		return
	}
	spoke, announced, end := s.phase == speaking, s.turn.announcement.text != "", s.turn.end
	s.leaveHearing()
	s.stopped()
	s.closeQuestion(agent.AnswerClosed)
	s.concludeFailed(s.turn.reason)
	s.openerHadTurn()
	s.openMicrophone()
	s.do(endTurn{end, s.turn.reason})
	s.soundEnded(end)
	if end != event.EndFailed {
		s.announcementSpoken()
	}
	s.turn, s.queue.yieldsUntil = turnState{}, time.Time{}
	if spoke && (announced || s.mic.misheard == 0) {
		s.channel.activeAt = s.now // people get their time to answer after we have spoken
	}
	s.channel.hangsUp = s.channel.hangsUp || end == event.EndHangUp
	switch {
	case end == event.EndSleep:
		s.close(end)
		return
	case s.channel.hangsUp && !slices.ContainsFunc(s.queue.waiting, announcement.canYield): // else it would be kept from talk to talk
		s.close(event.EndHangUp)
		return
	}
	if spoke || s.mic.mode == xiaozhi.Manual {
		s.rest()
	} else {
		// Nothing was spoken, so the robot still listens and sends no listen start.
		s.again()
	}
	s.sayWaiting()
}
