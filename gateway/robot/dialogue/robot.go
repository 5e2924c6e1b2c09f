package dialogue

import (
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// FromRobot is a message that the robot has sent.
type FromRobot struct{ Message xiaozhi.FromRobot }

func (in FromRobot) step(s *stepper) {
	if m, ok := in.Message.(xiaozhi.Hello); ok {
		handleHello(s, m)
		return
	}
	if s.phase == greeting {
		return // other messages before hello are ignored
	}
	switch m := in.Message.(type) {
	case xiaozhi.ListenStart:
		handleListenStart(s, m.Mode)
	case xiaozhi.ListenStop:
		handleListenStop(s)
	case xiaozhi.ListenDetect:
		handleListenDetect(s, m)
	case xiaozhi.Abort:
		// Answered with a tts stop in every phase: the robot stays in its speaking state until it receives
		// the tts stop.
		s.mic.abortedAt = s.now
		s.requeue()
		s.interrupt(true)
		if m.Reason != xiaozhi.WakeWord && s.music.sound != nil { // after the wake word, the music goes on
			s.music.stopsAt = s.now.Add(listenAfter)
		}
	case xiaozhi.FromMCP:
		s.emit(DeliverMCP{m.Payload})
	case xiaozhi.Event:
		s.channel.sensing = true
		s.emit(ReportSensor{m})
		if s.question.isWaiting() && s.question.audible && m.Name == "head_pet_started" {
			s.emit(AnswerQuestion{agent.Answer{Outcome: agent.AnswerTouch}})
		}
		s.markSettled()
	}
}

// handleHello handles the first hello, or a change of the robot's features by a later hello. It closes the
// channel of a robot whose sound is not Opus.
func handleHello(s *stepper, m xiaozhi.Hello) {
	if m.Format != "" {
		format := plain.Clip(plain.Text(m.Format), limit.Word)
		s.emit(Send{xiaozhi.Alert{Status: "Perch", Message: fmt.Sprintf("Perch understands Opus, and not %q. Set this robot to Opus.", format),
			Emotion: agent.Neutral.Name}})
		s.close(fmt.Sprintf("the robot's sound is %q, and not Opus", format))
		return
	}
	first := s.phase == greeting
	s.emit(Welcome{m, first})
	s.channel.sentAt, s.channel.introducedAt = s.now, time.Time{}
	if m.Features.MCP {
		s.channel.introducedAt = s.now
		s.emit(Introduce{List: true})
	}
	if first {
		s.phase, s.channel.activeAt, s.channel.greeted = quiet, s.now, s.now
		s.queue.openerUntil = s.now.Add(settleAfter) // if a person has opened the channel, the microphone opens by then
		s.emit(CollectWaiting{})
		early := s.queue.early
		s.queue.early = nil
		for _, in := range early {
			in.step(s)
		}
	}
}

// handleListenDetect handles a typed text, or the reason why the robot woke.
func handleListenDetect(s *stepper, m xiaozhi.ListenDetect) {
	if s.mic.isTyped(s.now, m) {
		handleTyped(s, m.Text)
		return
	}
	s.emit(ReportWakeText{m.Text})
	s.mic.openedByFace = s.mic.openedByFace || !s.mic.everOpened && m.Text == "face"
	if s.settings.Greet && isWakeWord(m.Text) && !s.turn.active {
		s.mic.wokenAt = s.now
	}
}

// handleTyped handles a text that somebody types instead of speaking. The text answers the question that
// people can hear, if there is one; otherwise it interrupts the turn under way and begins another. A text
// without words is ignored, and so is a text within minTypedGap after another.
func handleTyped(s *stepper, text string) {
	text, err := Speakable(plain.Clip(text, limit.Text))
	if err != nil || !hasPassed(s.now, s.mic.typedAt, minTypedGap) {
		return
	}
	s.mic.typedAt = s.now
	if !s.question.isWaiting() || !s.question.audible {
		s.interrupt(false)
		s.beginTurn(TurnStart{Text: text})
		return
	}
	if s.phase == speaking {
		s.emit(CutQuestion{})
	}
	s.emit(AnswerQuestion{agent.Answer{Outcome: agent.AnswerGiven, Text: text}})
}

// ErrNothingToSay is the error for a text without letters and digits.
var ErrNothingToSay error = &httpserver.Fault{Word: "nothing_to_say", Sentence: "there is nothing in the text that can be spoken", HTTP: http.StatusBadRequest}

// Speakable returns a text as one line, or an error if nothing in it can be spoken.
func Speakable(text string) (string, error) {
	text = agent.Speakable(text)
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
		return "", ErrNothingToSay
	}
	return text, nil
}

// handleListenStart handles the opening of the microphone. Its meaning depends on the moment:
//   - after a tts stop, the robot in auto mode resumes listening without an action of a person, which
//     interrupts nothing;
//   - just after an announcement has begun, its cause, such as a detected face, has opened the microphone
//     too; the announcement continues (listenLater);
//   - while a question can be heard, somebody is about to answer;
//   - while the robot speaks otherwise, the opening interrupts the speech (a barge-in) if somebody pushes to
//     talk, or if the robot has just sent abort, as the firmware does first; if not, the speech continues
//     (keepSpeaking).
func handleListenStart(s *stepper, mode xiaozhi.Mode) {
	s.yieldToOpener(s.now)
	s.mic.everOpened, s.mic.open = true, true
	resumed := !s.now.After(s.mic.resumesUntil) && mode != xiaozhi.Manual
	s.mic.resumesUntil = time.Time{}
	canAnswer := s.question.isWaiting() && s.question.audible
	if s.turn.active && !canAnswer && resumed {
		s.mic.mode, s.mic.listening = mode, true
		return
	}
	if s.turn.active && s.isUnsolicited(s.now) && mode != xiaozhi.Manual {
		listenLater(s, mode)
		return
	}
	if s.turn.active && !canAnswer && s.phase == speaking && mode != xiaozhi.Manual && !s.mic.hasJustAborted(s.now) {
		keepSpeaking(s, mode)
		return
	}
	if s.turn.active && !canAnswer {
		s.interrupt(false)
	}
	if s.question.isWaiting() && s.phase == speaking {
		s.emit(CutQuestion{})
	}
	if !resumed {
		s.channel.activeAt = s.now // somebody has opened the microphone to speak
	}
	s.leaveHearing()
	s.mic.resumeAwaited = time.Time{}
	s.mic.mode, s.mic.listening, s.phase = mode, true, ready
	s.emit(ResetInput{}, Publish{event.ListeningStarted{Mode: string(mode)}})
	if mode == xiaozhi.Manual {
		s.music.stopsAt = time.Time{}
		s.beginUtterance() // the button marks the utterance
		s.mic.packetAt = time.Time{}
	}
	s.greet()
	s.markSettled()
}

// keepSpeaking lets the robot's speech continue although the robot reports that its microphone is open. In
// auto mode, the appliance listens to the microphone after the speech.
func keepSpeaking(s *stepper, mode xiaozhi.Mode) {
	s.mic.mode = mode
	if mode == xiaozhi.Realtime {
		s.mic.listening = true
	} else {
		s.turn.listensAfter = true
	}
	s.markSettled()
}

// listenLater lets an announcement continue although the microphone has opened. The appliance listens
// after the announcement: in realtime mode at once, in auto mode after the robot's next listen start. A
// robot that was still in its connecting state when the announcement began has refused to speak, so speech
// that has begun is started again.
func listenLater(s *stepper, mode xiaozhi.Mode) {
	s.mic.mode, s.turn.listensAfter, s.mic.listening = mode, true, false
	s.channel.activeAt = s.now
	s.mic.wokenAt = time.Time{} // the announcement replaces a greeting
	if s.phase == speaking {
		s.emit(RestartSpeech{})
	}
	s.markSettled()
}

// handleListenStop handles the closing of the microphone. In manual mode it ends the utterance.
func handleListenStop(s *stepper) {
	s.mic.listening, s.turn.listensAfter, s.mic.open, s.mic.resumeAwaited = false, false, false, time.Time{}
	if s.phase == hearing {
		s.endUtterance()
	} else if s.phase == ready {
		s.phase = quiet
	}
}
