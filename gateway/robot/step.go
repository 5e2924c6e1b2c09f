package robot

import (
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
)

// stepper collects the effects of one step.
type stepper struct {
	state
	now     time.Time
	effects []effect
}

func (s *stepper) do(e ...effect) { s.effects = append(s.effects, e...) }

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
	case heard:
		s.heard(in.text)
	case misheard:
		s.misheard()
	case askedFor:
		s.asking, s.question, s.askedUntil = true, in.id, time.Time{}
		s.do(publish{event.Asked{ID: in.id, Text: in.text}})
	case replied:
		s.leaveHearing()
		s.answered(in.outcome)
		s.phase = thinking
	case finished:
		s.turnDone, s.end, s.reason = true, in.end, in.reason
		s.maybeEnd()
	case played:
		s.played(in.progress)
	case tell:
		s.tell(in.text)
	case hear:
		if s.phase != greeting {
			s.interrupt(false)
			s.begin(turnStart{text: in.text})
		}
	case silent:
		s.interrupt(true)
	case hangUp:
		s.close(in.why)
	case tick:
		s.tick()
	}
	return s.state, s.effects
}

func (s *stepper) said(m xiaozhi.FromRobot) {
	if hello, ok := m.(xiaozhi.Hello); ok {
		if s.phase == greeting {
			s.phase, s.understood = quiet, s.now
		}
		s.do(welcome{hello})
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
		s.do(publish{perceived("wake_word", clip(m.Text, mostName))})
	case xiaozhi.Abort:
		// Answered whatever the state: the robot stays in speaking until then.
		s.interrupt(true)
	case xiaozhi.FromMCP:
		s.do(deliver{m.Payload})
	case xiaozhi.Event:
		s.sensing = true
		s.do(publish{sensed(m)})
		if s.asking && m.Name == "head_pet_started" {
			s.do(answerAsk{agent.Answer{Outcome: agent.AnswerTouch}})
		}
	}
}

// listenStart opens the microphone. In the middle of a turn it is a barge-in:
// somebody pushed to talk. But in auto mode it also is what the robot says
// after every tts stop, and then interrupts nothing that has begun since.
func (s *stepper) listenStart(mode xiaozhi.Mode) {
	resumed := s.resumes && mode != xiaozhi.Manual
	s.resumes = false
	if s.turn && !s.asking && resumed {
		s.mode, s.listening = mode, true
		return
	}
	if s.turn && !s.asking {
		s.interrupt(false)
	}
	s.leaveHearing()
	s.mode, s.listening, s.phase = mode, true, ready
	s.do(listenNew{}, publish{event.ListeningStarted{Mode: string(mode)}})
	if mode == xiaozhi.Manual {
		s.speechBegan() // the button says so
	}
	s.sayWaiting()
}

// listenStop ends an utterance in manual mode; the microphone is closed.
func (s *stepper) listenStop() {
	s.listening = false
	if s.phase == hearing {
		s.utteranceOver()
	} else if s.phase == ready {
		s.phase = quiet
	}
}

func (s *stepper) speechBegan() {
	if s.phase != ready {
		return
	}
	s.phase, s.began, s.packetAt = hearing, s.now, s.now
	if s.asking {
		s.do(giveUtterance{})
		return
	}
	s.begin(turnStart{utterance: true, aloud: s.refused == 0})
	s.phase = hearing
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
		s.do(listenNew{})
	}
}

func (s *stepper) begin(t turnStart) {
	s.turn, s.turnDone, s.drained, s.end, s.reason = true, false, false, "", ""
	s.phase = thinking
	s.do(beginTurn{t})
}

// interrupt is the one way a turn is stopped, whoever asks for it. Speech
// that has begun is ended with tts stop; so is an abort, always.
func (s *stepper) interrupt(abort bool) {
	if !s.turn {
		if abort {
			s.do(send{xiaozhi.TTSStop{}})
		}
		return
	}
	s.stopped()
	s.answered(agent.AnswerClosed)
	s.do(cancelTurn{abort}, publish{event.TurnEnded{End: event.EndCancelled}})
	s.turn = false
	s.rest()
}

// stopped notes that a tts stop ends the robot's speech. Outside push to talk
// it then says by itself that it listens again, once it has played all.
func (s *stepper) stopped() {
	if s.phase == speaking && s.mode != xiaozhi.Manual && s.mode != xiaozhi.Realtime {
		s.resumes = true
	}
}

// answered ends a question, however it ended.
func (s *stepper) answered(outcome agent.Outcome) {
	if s.asking {
		s.do(publish{event.Answered{ID: s.question, Answer: string(outcome)}})
	}
	s.asking, s.question, s.askedUntil = false, "", time.Time{}
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
	if s.mode == xiaozhi.Realtime && s.listening {
		s.phase = ready
		s.do(listenNew{}, publish{event.ListeningStarted{Mode: string(s.mode)}})
	}
}

func (s *stepper) played(p progress) {
	if !s.turn {
		return
	}
	if p.started {
		s.leaveHearing()
		s.phase = speaking
		if s.mode != xiaozhi.Realtime {
			s.listening = false // the robot has closed its microphone
		}
	}
	if p.began {
		s.do(publish{event.SpeakingStarted{}})
	}
	for _, text := range p.said {
		s.do(publish{event.Said{Text: text}})
	}
	if p.paused {
		s.leaveHearing()
		s.stopped()
		s.again() // in realtime the microphone is open, and nothing more will say so
		if s.asking {
			s.askedUntil = s.now.Add(p.askFor)
		}
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
	spoke := s.phase == speaking
	s.leaveHearing()
	s.stopped()
	s.answered(agent.AnswerClosed)
	s.turn = false
	s.do(endTurn{s.end, s.reason})
	if spoke && s.refused == 0 {
		s.understood = s.now // people get their time to answer after we have spoken
	}
	if s.end == event.EndHangUp || s.end == event.EndSleep {
		s.close(s.end)
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

func (s *stepper) tell(text string) {
	if s.turn || s.phase == greeting {
		if len(s.toSay) < mostToSay {
			s.toSay = append(s.toSay[:len(s.toSay):len(s.toSay)], text)
		}
		return
	}
	s.begin(turnStart{say: text})
}

// sayWaiting says what has waited for a turn to end.
func (s *stepper) sayWaiting() {
	if s.turn || len(s.toSay) == 0 {
		return
	}
	text := s.toSay[0]
	s.toSay = s.toSay[1:]
	s.begin(turnStart{say: text})
}

func (s *stepper) close(why string) {
	if s.turn {
		s.answered(agent.AnswerClosed)
		s.do(cancelTurn{}, publish{event.TurnEnded{End: event.EndCancelled}})
	}
	s.phase, s.turn = closing, false
	s.do(closeChannel{why})
}

// tick is the time that due gave.
func (s *stepper) tick() {
	switch {
	case s.phase == greeting && passed(s.now, s.opened, s.hello):
		s.close("no hello")
	case s.phase == hearing && (passed(s.now, s.packetAt, s.stalled) || passed(s.now, s.began, s.longest)):
		s.utteranceOver()
	case s.asking && !s.askedUntil.IsZero() && !s.now.Before(s.askedUntil):
		s.askedUntil = time.Time{}
		if s.phase == hearing {
			s.utteranceOver() // too late, but whoever listens to it must end
		}
		s.do(answerAsk{agent.Answer{Outcome: agent.AnswerExpired}})
	case s.idles() && passed(s.now, s.understood, s.idle):
		s.close("idle")
	}
}

// idles reports whether the clock of an idle talk runs. A robot that sends
// events opens its channel again at once, and would flap.
func (s *state) idles() bool {
	return s.idle > 0 && !s.turn && !s.sensing && s.phase > greeting && s.phase < closing
}

func passed(now, from time.Time, d time.Duration) bool { return !now.Before(from.Add(d)) }

// due is when the state needs a tick, and the zero time when it needs none.
func (s *state) due() time.Time {
	var due time.Time
	earliest := func(t time.Time) {
		if due.IsZero() || t.Before(due) {
			due = t
		}
	}
	switch s.phase {
	case greeting:
		earliest(s.opened.Add(s.hello))
	case hearing:
		earliest(s.packetAt.Add(s.stalled))
		earliest(s.began.Add(s.longest))
	}
	if s.asking && !s.askedUntil.IsZero() {
		earliest(s.askedUntil)
	}
	if s.idles() {
		earliest(s.understood.Add(s.idle))
	}
	return due
}
