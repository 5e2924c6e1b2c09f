package robot

import (
	"slices"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device/xiaozhi"
	"perch/event"
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
			s.fed = s.now
		}
	}
	s.effects = append(s.effects, effects...)
}

// step is what a session does when something happens: the state after it, and
// the effects in the order they are to be carried out. It is pure; time comes
// in with the input.
func step(st state, now time.Time, in input) (state, []effect) {
	s := &stepper{state: st, now: now}
	if s.phase == closing {
		return st, nil
	}
	switch in := in.(type) {
	case said:
		s.said(in.message)
	case speechBegan:
		s.speechBegan()
	case speechEnded:
		s.utteranceOver()
	case streaming:
		s.streaming()
	case heard:
		s.heard(in.text)
	case misheard:
		s.misheard()
	case askedFor:
		s.asked(in.question)
	case replied:
		s.leaveHearing()
		s.announce()
		s.answered(in.answer.Outcome)
		if in.answer.Outcome != agent.AnswerClosed { // else the turn fails, and says why
			s.conclude(ending{answer: in.answer})
		}
		if s.phase != speaking { // else the question still sounds, and its tts stop is to come
			s.phase = thinking
		}
	case finished:
		s.turnDone, s.end, s.reason = true, in.end, in.reason
		s.maybeEnd()
	case played:
		s.played(in.progress)
	case hangUp:
		s.close(in.why)
	case tick:
		s.tick()
	default:
		s.fromHouse(in)
	}
	return s.state, s.effects
}

// said is a message of the robot.
func (s *stepper) said(m xiaozhi.FromRobot) {
	if hello, ok := m.(xiaozhi.Hello); ok {
		s.hello(hello)
		return
	}
	if s.phase == greeting {
		return // nothing counts before hello
	}
	switch m := m.(type) {
	case xiaozhi.ListenStart:
		s.listenStart(m.Mode)
	case xiaozhi.ListenStop:
		s.listenStop()
	case xiaozhi.ListenDetect:
		if s.isTyped(m) {
			s.takeTyped(m.Text)
			return
		}
		s.do(detected{m.Text})
		s.byFace = s.byFace || !s.listened && m.Text == "face"
		if s.greets && isWakeWord(m.Text) && !s.turn {
			s.woken = s.now
		}
	case xiaozhi.Abort:
		// Answered whatever the state: the robot stays in speaking until then.
		s.aborted = s.now
		s.tellLater()
		s.interrupt(true)
	case xiaozhi.FromMCP:
		s.do(deliver{m.Payload})
	case xiaozhi.Event:
		s.sensing = true
		s.do(sensed{m})
		if s.asking && s.put && m.Name == "head_pet_started" {
			s.do(answerAsk{agent.Answer{Outcome: agent.AnswerTouch}})
		}
		s.settle()
	}
}

// hello is the first message, or a later one that changes what was agreed.
func (s *stepper) hello(m xiaozhi.Hello) {
	first := s.phase == greeting
	s.do(welcome{m, first})
	s.fed, s.introduced = s.now, time.Time{}
	if m.Features.MCP {
		s.introduced = s.now
		s.do(introduce{list: true})
	}
	if first {
		s.phase, s.understood, s.greeted = quiet, s.now, s.now
		s.opener = s.now.Add(settleAfter) // by then whoever opened it has said so
		s.do(collect{})
		early := s.early
		s.early = nil
		for _, in := range early {
			s.fromHouse(in)
		}
	}
}

// isWakeWord tells a wake word from the other causes that builds give for a
// talk which nobody has opened with words.
func isWakeWord(text string) bool {
	return text != "" && text != "face" && text != "head_pet_hold"
}

// settle is the robot out of its connecting state. What waited is said.
func (s *stepper) settle() {
	s.settled = true
	s.sayWaiting()
}

// isTyped tells words that somebody typed from what has woken a robot. Some
// clients say so. Of others a robot's wake word is the first thing, or comes
// with the sound of it.
func (s *stepper) isTyped(m xiaozhi.ListenDetect) bool {
	return m.Typed || isWakeWord(m.Text) && s.listened && !s.flow.preRoll(s.now)
}

// Nobody types more, nor so fast.
const (
	mostTyped  = 2000 // bytes
	typedEvery = 500 * time.Millisecond
)

// takeTyped takes a text as what was said: the answer to a question that was
// put, or else a turn of its own, also while we speak.
func (s *stepper) takeTyped(text string) {
	text, err := speakable(clip(text, mostTyped))
	if err != nil || !passed(s.now, s.typed, typedEvery) {
		return
	}
	s.typed = s.now
	if !s.asking || !s.put {
		s.interrupt(false)
		s.begin(turnStart{text: text})
		return
	}
	if s.phase == speaking {
		s.do(cutQuestion{})
	}
	s.do(answerAsk{agent.Answer{Outcome: agent.AnswerGiven, Text: text}})
}

// listenStart opens the microphone. While we speak it is a barge-in where
// somebody pushed to talk, or has just aborted, as the firmware does first. In
// auto mode it also is what the robot says after every tts stop, and then
// interrupts nothing that has begun since, as what opens a talk does not
// interrupt what we have just begun to tell. To a question it is the answer,
// once that can be heard.
func (s *stepper) listenStart(mode xiaozhi.Mode) {
	s.letSpeak()
	s.listened, s.open = true, true
	resumed := !s.now.After(s.resumes) && mode != xiaozhi.Manual
	s.resumes = time.Time{}
	answers := s.asking && s.put
	if s.turn && !answers && resumed {
		s.mode, s.listening = mode, true
		return
	}
	if s.turn && s.unaskedYet() && mode != xiaozhi.Manual {
		s.listenLater(mode)
		return
	}
	if s.turn && !answers && s.phase == speaking && mode != xiaozhi.Manual && !s.justAborted() {
		s.goOn(mode)
		return
	}
	if s.turn && !answers {
		s.interrupt(false)
	}
	if s.asking && s.phase == speaking {
		s.do(cutQuestion{})
	}
	if !resumed {
		s.understood = s.now // somebody has opened it, to speak
	}
	s.leaveHearing()
	s.rested = time.Time{}
	s.mode, s.listening, s.phase = mode, true, ready
	s.do(listenNew{}, publish{event.ListeningStarted{Mode: string(mode)}})
	if mode == xiaozhi.Manual {
		s.speechBegan() // the button says so
		s.packetAt = time.Time{}
	}
	s.greet()
	s.settle()
}

// letSpeak lets somebody speak before what waits is said, for whom the microphone
// opens: because he has just interrupted, or opens the talk. A face does not.
func (s *stepper) letSpeak() {
	until := s.now.Add(yieldFor)
	if s.now.Before(s.yields) {
		s.yields = until
	}
	switch {
	case s.listened && !s.now.Before(s.opener): // nobody opens it now
	case s.byFace:
		s.opener = time.Time{}
	default:
		s.opener = until
	}
}

// hadTurn ends the time in which whoever opened the talk speaks first, where a
// turn of his has ended. One that only greeted him, or did not understand him,
// gives him as long again.
func (s *stepper) hadTurn() {
	switch {
	case s.answers:
		s.opener = time.Time{}
	case !s.opener.IsZero() && s.listened && s.refused <= 1:
		s.opener = s.now.Add(yieldFor)
	}
}

// goOn lets our speech go on where a client says no more than that its
// microphone is open. In auto mode what that hears counts once we have spoken.
func (s *stepper) goOn(mode xiaozhi.Mode) {
	s.mode = mode
	if mode == xiaozhi.Realtime {
		s.listening = true
	} else {
		s.opens = true
	}
	s.settle()
}

// greet answers a wake word, once the microphone is open: the robot is then
// sure to have left its connecting state.
func (s *stepper) greet() {
	woken := !s.woken.IsZero()
	s.woken = time.Time{}
	if woken && !s.turn {
		s.begin(turnStart{telling: telling{phrase: phraseAwake}})
	}
}

// listenStop ends an utterance in manual mode; the microphone is closed.
func (s *stepper) listenStop() {
	s.listening, s.opens, s.open, s.rested = false, false, false, time.Time{}
	if s.phase == hearing {
		s.utteranceOver()
	} else if s.phase == ready {
		s.phase = quiet
	}
}

// speechBegan is the begin of an utterance. In realtime, where the microphone
// is open while we speak, it stops our speech, and our thinking about what was
// said before.
func (s *stepper) speechBegan() {
	if s.interruptible() {
		s.cancel(false)
		s.phase = ready
		s.do(publish{event.ListeningStarted{Mode: string(s.mode)}})
	}
	if s.phase != ready {
		return
	}
	s.began, s.packetAt = s.now, s.now
	if s.asking {
		s.phase = hearing
		s.do(giveUtterance{})
		return
	}
	s.begin(turnStart{utterance: true, aloud: s.refused == 0})
	s.phase = hearing
}

// interruptible reports whether words stop the turn under way. They do not
// while it is a question being put, or words being recognized: somebody who
// goes on after a pause has not changed his mind.
func (s *stepper) interruptible() bool {
	if s.mode != xiaozhi.Realtime || !s.listening || !s.turn || s.asking {
		return false
	}
	return s.phase == speaking || s.phase == thinking && s.answers
}

// listens reports whether the end-pointer is to find utterances: in manual mode
// the button does, and outside realtime nobody is listened to while we speak.
func (s *state) listens() bool {
	switch s.mode {
	case xiaozhi.Manual:
		return false
	case xiaozhi.Realtime:
		return s.listening && s.phase > quiet && s.phase < closing
	}
	return s.phase == ready || s.phase == hearing
}

// utteranceOver lets the recognizer finish. The turn then tells what it heard.
func (s *stepper) utteranceOver() {
	if s.phase == hearing {
		s.phase = thinking
		s.do(finishUtterance{})
	}
}

func (s *stepper) heard(text string) {
	s.refused, s.understood = 0, s.now
	if !s.asking {
		s.answers = true
		s.do(keepHeard{text})
	}
	s.do(send{xiaozhi.STT{Text: text}}, publish{event.Heard{Text: text}})
}

// misheard was speech, but nothing to stand by. The first is answered aloud
// by the turn; later ones are only shown, so that a television cannot keep a
// robot talking.
func (s *stepper) misheard() {
	s.refused++
	s.do(send{xiaozhi.STT{Text: "…"}}, publish{event.Misheard{}})
	if s.asking && s.phase != hearing { // or the next answer is being spoken already
		s.again()
	}
}

// again goes on listening where the microphone is still open.
func (s *stepper) again() {
	s.phase = quiet
	if s.listening {
		s.phase = ready
		s.do(listenNew{}, publish{event.ListeningStarted{Mode: string(s.mode)}})
	}
}

func (s *stepper) begin(t turnStart) {
	if !s.now.Before(s.opener) { // nobody has said anything
		s.opener = time.Time{}
	}
	s.turn, s.turnDone, s.drained, s.begun, s.answers = true, false, false, false, false
	s.telling, s.end, s.reason, s.lastSaid = t.telling, "", "", ""
	s.leaves = s.leaves && t.telling.patient()
	s.unasked, s.opens, s.rested = time.Time{}, false, time.Time{}
	if t.telling.words() || t.telling.sound != nil {
		s.unasked = s.now.Add(unaskedFor)
	}
	s.phase = thinking
	s.do(beginTurn{t})
}

// interrupt stops a turn and leaves the robot at rest. What waits to be said
// lets whoever interrupts speak first.
func (s *stepper) interrupt(abort bool) {
	if s.turn && !abort {
		s.tellLater()
	}
	if s.turn {
		s.halt(abort)
	} else if abort {
		s.do(send{xiaozhi.TTSStop{}})
	}
	s.yields = s.now.Add(resumeWithin)
	if s.phase == ready {
		s.yields = s.now.Add(yieldFor)
	}
}

// halt stops the turn under way and leaves the robot at rest.
func (s *stepper) halt(abort bool) {
	spoke := s.phase == speaking
	s.cancel(abort)
	if spoke || s.mode == xiaozhi.Manual {
		s.rest()
	} else {
		s.again() // the robot was never made to speak: it listens, and will not say so
	}
}

// tellLater keeps what the turn under way was to tell and has not begun to.
func (s *stepper) tellLater() {
	if s.turn && !s.begun && !s.announced && s.telling.words() {
		s.telling.urgent = false // whoever has interrupted it speaks first
		s.toSay = append([]telling{s.telling}, s.toSay...)
		s.telling = telling{}
	}
}

// cancel is the one way a turn is stopped, whoever asks for it. Speech that
// has begun is ended with tts stop; so is an abort, always.
func (s *stepper) cancel(abort bool) {
	s.stopped()
	s.answered(agent.AnswerClosed)
	s.cancelled(abort)
	s.conclude(endedBy(agent.AnswerClosed))
	s.fed = s.now
	if s.begun {
		s.told() // whoever cut it off has heard it
	}
	s.hadTurn()
	s.turn, s.leaves = false, false
	s.openUp()
	s.understood = s.now // and gets the time to speak
}

// cancelled stops the turn under way, and tells of it.
func (s *stepper) cancelled(abort bool) {
	s.do(cancelTurn{abort})
	if !s.soundOver(event.EndCancelled) {
		s.do(publish{event.TurnEnded{End: event.EndCancelled}})
	}
}

// told says that what the turn was to tell has been told.
func (s *stepper) told() {
	switch {
	case s.telling.notice != "":
		s.do(publish{event.NotificationChanged{ID: s.telling.notice, State: notice.Spoken}})
	case s.telling.waited != "":
		s.do(forgetCommand{s.telling.waited}, publish{event.Command{Thing: thingSay, State: event.CommandDone}})
	}
	s.telling = telling{}
}

// stopped notes that a tts stop ends the robot's speech. Outside push to talk
// it then says by itself that it listens again, once it has played all.
func (s *stepper) stopped() {
	if s.phase == speaking {
		s.expectResume()
	}
}

func (s *stepper) expectResume() {
	if s.mode != xiaozhi.Manual && s.mode != xiaozhi.Realtime {
		s.resumes = s.now.Add(resumeWithin)
	}
}

// leaveHearing finishes an utterance that something else has come before, so
// that whoever recognizes it does not wait for ever.
func (s *stepper) leaveHearing() {
	if s.phase == hearing {
		s.do(finishUtterance{})
	}
}

// rest is after a turn: in auto mode the robot says when it listens again, in
// realtime its microphone was never closed.
func (s *stepper) rest() {
	s.phase = quiet
	if s.mode == xiaozhi.Auto && s.open {
		s.rested = s.now
	}
	if s.mode == xiaozhi.Realtime && s.listening {
		s.phase = ready
		s.do(listenNew{}, publish{event.ListeningStarted{Mode: string(s.mode)}})
	}
}

func (s *stepper) played(p progress) {
	s.fed = s.now
	if !s.turn {
		return
	}
	if p.stopped { // a pause that may be over already
		s.expectResume()
	}
	if p.started {
		s.leaveHearing()
		s.phase = speaking
		if !s.begun && !s.unasked.IsZero() {
			s.unasked = s.now.Add(unaskedFor)
		}
		if s.mode == xiaozhi.Realtime {
			s.do(listenNew{}) // whoever speaks now, speaks into our words
		} else {
			s.listening = false // the robot has closed its microphone
		}
	}
	if p.began {
		s.begun = true
		if sound := s.telling.sound; sound != nil {
			s.do(publish{event.SoundStarted{Name: sound.name}})
		} else {
			s.do(publish{event.SpeakingStarted{}})
		}
		if s.telling.notice != "" {
			s.do(publish{event.NotificationChanged{ID: s.telling.notice, State: notice.Shown}})
		}
	}
	for _, text := range p.said {
		s.do(publish{event.Said{Text: text}})
		s.lastSaid = text
		if s.asking && text == s.question.Text {
			s.put = true
			s.announce()
		}
	}
	if p.paused {
		s.paused(p.askFor)
	}
	if p.drained {
		s.drained = true
		s.maybeEnd()
	}
}

// maybeEnd ends a turn whose brain has finished and whose speech was played.
func (s *stepper) maybeEnd() {
	if !s.turn || !s.turnDone || !s.drained {
		return
	}
	spoke, told := s.phase == speaking, s.telling.text != ""
	s.leaveHearing()
	s.stopped()
	s.answered(agent.AnswerClosed)
	s.concludeFailed(s.reason)
	s.hadTurn()
	s.turn, s.yields = false, time.Time{}
	s.openUp()
	s.do(endTurn{s.end, s.reason})
	s.soundOver(s.end)
	if s.end != event.EndFailed {
		s.told()
	}
	if spoke && (told || s.refused == 0) {
		s.understood = s.now // people get their time to answer after we have spoken
	}
	s.leaves = s.leaves || s.end == event.EndHangUp
	switch {
	case s.end == event.EndSleep:
		s.close(s.end)
		return
	case s.leaves && !slices.ContainsFunc(s.toSay, telling.patient): // else it would be kept from talk to talk
		s.close(event.EndHangUp)
		return
	}
	if spoke || s.mode == xiaozhi.Manual {
		s.rest()
	} else {
		// Nothing was said, so the robot is still listening and will not say so again.
		s.again()
	}
	s.sayWaiting()
}
