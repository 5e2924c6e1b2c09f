package dialogue

import (
	"net/http"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// FromRobot is a message of the robot.
type FromRobot struct{ Message xiaozhi.FromRobot }

func (in FromRobot) step(s *stepper) {
	if m, ok := in.Message.(xiaozhi.Hello); ok {
		hello(s, m)
		return
	}
	if s.phase == greeting {
		return // nothing counts before hello
	}
	switch m := in.Message.(type) {
	case xiaozhi.ListenStart:
		listenStart(s, m.Mode)
	case xiaozhi.ListenStop:
		listenStop(s)
	case xiaozhi.ListenDetect:
		listenDetect(s, m)
	case xiaozhi.Abort:
		// Answered in every state: the robot stays in speaking until then.
		s.mic.abortedAt = s.now
		s.requeue()
		s.interrupt(true)
	case xiaozhi.FromMCP:
		s.emit(DeliverMCP{m.Payload})
	case xiaozhi.Event:
		s.channel.sensing = true
		s.emit(ReportSensor{m})
		if s.question.waits() && s.question.audible && m.Name == "head_pet_started" {
			s.emit(AnswerQuestion{agent.Answer{Outcome: agent.AnswerTouch}})
		}
		s.connected()
	}
}

// hello handles the first message, or a later hello that changes what was agreed.
func hello(s *stepper, m xiaozhi.Hello) {
	first := s.phase == greeting
	s.emit(Welcome{m, first})
	s.channel.sentAt, s.channel.introducedAt = s.now, time.Time{}
	if m.Features.MCP {
		s.channel.introducedAt = s.now
		s.emit(Introduce{List: true})
	}
	if first {
		s.phase, s.channel.activeAt, s.channel.greeted = quiet, s.now, s.now
		s.queue.openerUntil = s.now.Add(settleAfter) // by then a person who has opened it has opened the microphone
		s.emit(CollectWaiting{})
		early := s.queue.early
		s.queue.early = nil
		for _, in := range early {
			in.step(s)
		}
	}
}

// listenDetect handles a text that was typed, or the reason why the robot woke.
func listenDetect(s *stepper, m xiaozhi.ListenDetect) {
	if s.mic.isTyped(s.now, m) {
		typed(s, m.Text)
		return
	}
	s.emit(ReportWakeText{m.Text})
	s.mic.openedByFace = s.mic.openedByFace || !s.mic.everOpened && m.Text == "face"
	if s.settings.Greet && isWakeWord(m.Text) && !s.turn.active {
		s.mic.wokenAt = s.now
	}
}

// typed handles a text that stands for an utterance: it answers a question that was put, or else
// begins a turn, also while we speak.
func typed(s *stepper, text string) {
	text, err := Speakable(plain.Clip(text, limit.Text))
	if err != nil || !passed(s.now, s.mic.typedAt, typedEvery) {
		return
	}
	s.mic.typedAt = s.now
	if !s.question.waits() || !s.question.audible {
		s.interrupt(false)
		s.beginTurn(TurnStart{Text: text})
		return
	}
	if s.phase == speaking {
		s.emit(CutQuestion{})
	}
	s.emit(AnswerQuestion{agent.Answer{Outcome: agent.AnswerGiven, Text: text}})
}

// Speakable returns a text in one line, if it holds something that can be spoken.
func Speakable(text string) (string, error) {
	text = agent.Speakable(text)
	if _, words := agent.SplitEmotion(text); words == "" {
		return "", &httpserver.Fault{Word: "nothing_to_say", Sentence: "there is nothing in the text that can be spoken", HTTP: http.StatusBadRequest}
	}
	return text, nil
}

// listenStart opens the microphone. While we speak it is a barge-in if somebody pushed to talk,
// or has just aborted, as the firmware does first. In auto mode the robot also sends it after
// every tts stop, and then interrupts nothing that has begun since, as what opens a talk does
// not interrupt an announcement that has just begun. To a question it is the answer, once the
// question has begun to sound.
func listenStart(s *stepper, mode xiaozhi.Mode) {
	s.yieldToOpener(s.now)
	s.mic.everOpened, s.mic.open = true, true
	resumed := !s.now.After(s.mic.resumesUntil) && mode != xiaozhi.Manual
	s.mic.resumesUntil = time.Time{}
	answers := s.question.waits() && s.question.audible
	if s.turn.active && !answers && resumed {
		s.mic.mode, s.mic.listening = mode, true
		return
	}
	if s.turn.active && s.unsolicited(s.now) && mode != xiaozhi.Manual {
		listenLater(s, mode)
		return
	}
	if s.turn.active && !answers && s.phase == speaking && mode != xiaozhi.Manual && !s.mic.justAborted(s.now) {
		keepSpeaking(s, mode)
		return
	}
	if s.turn.active && !answers {
		s.interrupt(false)
	}
	if s.question.waits() && s.phase == speaking {
		s.emit(CutQuestion{})
	}
	if !resumed {
		s.channel.activeAt = s.now // somebody has opened it, to speak
	}
	s.leaveHearing()
	s.mic.resumeAwaited = time.Time{}
	s.mic.mode, s.mic.listening, s.phase = mode, true, ready
	s.emit(ResetInput{}, Publish{event.ListeningStarted{Mode: string(mode)}})
	if mode == xiaozhi.Manual {
		s.beginUtterance() // the button is the end-pointer
		s.mic.packetAt = time.Time{}
	}
	s.greet()
	s.connected()
}

// keepSpeaking lets our speech go on if a client sends no more than that its microphone is
// open. In auto mode what that hears counts once we have spoken.
func keepSpeaking(s *stepper, mode xiaozhi.Mode) {
	s.mic.mode = mode
	if mode == xiaozhi.Realtime {
		s.mic.listening = true
	} else {
		s.turn.listensAfter = true
	}
	s.connected()
}

// listenLater lets an announcement go on. The microphone is listened to once all of it was
// spoken: with the listen start that a robot in auto mode then sends, and by itself in
// realtime. A robot that was connecting when tts start came has refused to speak; by now it can.
func listenLater(s *stepper, mode xiaozhi.Mode) {
	s.mic.mode, s.turn.listensAfter, s.mic.listening = mode, true, false
	s.channel.activeAt = s.now
	s.mic.wokenAt = time.Time{} // it is spoken to already
	if s.phase == speaking {
		s.emit(RestartSpeech{})
	}
	s.connected()
}

// listenStop ends an utterance in manual mode; the microphone is closed.
func listenStop(s *stepper) {
	s.mic.listening, s.turn.listensAfter, s.mic.open, s.mic.resumeAwaited = false, false, false, time.Time{}
	if s.phase == hearing {
		s.endUtterance()
	} else if s.phase == ready {
		s.phase = quiet
	}
}
