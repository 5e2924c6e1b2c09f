package dialogue

import (
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device/xiaozhi"
	"perch/event"
)

// Inputs of the end-pointer and the turn.
type (
	// Packet is a packet of the robot's sound. Its address is the input, so that Step allocates
	// nothing for most packets.
	Packet struct {
		Duration time.Duration // of its sound
		Muted    bool          // nobody listens to the robot
	}
	// SpeechBegan is speech found by the end-pointer.
	SpeechBegan struct{}
	// SpeechEnded is its end.
	SpeechEnded struct{}

	// Transcript is what the turn's recognizer has understood.
	Transcript struct{ Text string }
	// Misheard is an utterance that was not understood.
	Misheard struct{}
	// TurnFinished says that the agent has finished. End is empty if nothing came of the turn,
	// as with a noise.
	TurnFinished struct{ End, Reason string }

	// Progress is what has become of the turn's speech since the last Progress.
	Progress struct {
		Started bool     // tts start has left
		Began   bool     // the first packet has left
		Spoken  []string // sentences whose first packet has left
		Gesture string   // the latest that was reached
		Paused  bool     // stopped for a question, all played, and not gone on since
		Stopped bool     // stopped for a question
		AskFor  time.Duration
		Drained bool // all played, to the end
	}
)

// step listens to sound that goes on without a listen start.
func (*Packet) step(s *stepper) {
	s.mic.resumeAwaited, s.mic.listening = time.Time{}, true
	s.resumeListening()
}

func (SpeechBegan) step(s *stepper) {
	s.mic.voiced = true
	s.beginUtterance()
}

func (SpeechEnded) step(s *stepper) {
	s.mic.voiced = false
	s.endUtterance()
}

func (in Transcript) step(s *stepper) {
	s.mic.misheard, s.channel.activeAt = 0, s.now
	answers := !s.question.waits()
	if answers {
		s.turn.understood = true
		s.emit(KeepTranscript(in))
	}
	s.emit(Send{xiaozhi.STT{Text: in.Text}}, Publish{event.Heard{Text: in.Text}})
	if answers && s.mic.voiced { // somebody has gone on while we recognized
		s.beginUtterance()
	}
}

// step answers the first utterance that was not understood aloud. Later ones are only shown, or
// a television would make a robot talk for ever.
func (Misheard) step(s *stepper) {
	s.mic.misheard++
	s.emit(Send{xiaozhi.STT{Text: "…"}}, Publish{event.Misheard{}})
	if s.question.waits() && s.phase != hearing { // or the next answer is being spoken already
		s.resumeListening()
	}
}

func (in TurnFinished) step(s *stepper) {
	s.turn.done, s.turn.end, s.turn.reason = true, in.End, in.Reason
	s.endIfDone()
}

func (p Progress) step(s *stepper) {
	s.channel.sentAt = s.now
	if !s.turn.active {
		return
	}
	if p.Stopped { // a pause that may be over already
		s.mic.expectResume(s.now)
	}
	if p.Started {
		p.started(s)
	}
	if p.Began {
		p.began(s)
	}
	if p.Gesture != "" {
		s.emit(Publish{event.Gesture{Name: p.Gesture, By: event.ByModel}})
	}
	for _, text := range p.Spoken {
		s.emit(Publish{event.Said{Text: text}})
		s.turn.lastSpoken = text
		if s.question.waits() && text == s.question.asked.Text {
			s.question.audible = true
			s.publishQuestion()
		}
	}
	if p.Paused {
		p.paused(s)
	}
	if p.Drained {
		s.turn.drained = true
		s.endIfDone()
	}
}

// started follows a tts start.
func (Progress) started(s *stepper) {
	s.leaveHearing()
	s.phase = speaking
	if !s.turn.begun && !s.turn.unsolicitedUntil.IsZero() {
		s.turn.unsolicitedUntil = s.now.Add(unsolicitedFor)
	}
	if s.mic.mode == xiaozhi.Realtime {
		s.emit(ResetInput{}) // speech from now on is an interruption
	} else {
		s.mic.listening = false // the robot has closed its microphone
	}
}

// began follows the first packet.
func (Progress) began(s *stepper) {
	s.turn.begun = true
	if sound := s.turn.announcement.Sound; sound != nil {
		s.emit(Publish{event.SoundStarted{Name: sound.Name}})
	} else {
		s.emit(Publish{event.SpeakingStarted{}})
	}
	if s.turn.announcement.Notice != "" {
		s.emit(Publish{event.NotificationChanged{ID: s.turn.announcement.Notice, State: notice.Shown}})
	}
}

// paused follows a question whose speech was played or cut off.
func (p Progress) paused(s *stepper) {
	s.turn.unsolicitedUntil = time.Time{} // a microphone that opens now, opens for the answer
	if s.mic.mode == xiaozhi.Realtime {
		s.openMicrophone()
	}
	if s.phase != ready && s.phase != hearing { // else somebody answers already
		s.phase = thinking // a touch may have answered
		if s.question.waits() {
			s.resumeListening() // in realtime the microphone is open, and nothing more will say so
		}
	}
	if s.question.waits() {
		s.question.audible, s.question.until = true, s.now.Add(p.AskFor)
		s.publishQuestion()
		if q := s.turn.announcement.Question; q != nil {
			s.question.until = q.Until
		}
	}
}

// Inputs of a question that the turn asks.
type (
	// QuestionPut is a question that waits for an answer from now on.
	QuestionPut struct{ Question *agent.Question }
	// QuestionAnswered is its answer, with which the turn goes on.
	QuestionAnswered struct{ Answer agent.Answer }
)

func (in QuestionPut) step(s *stepper) {
	s.question.asked, s.question.until = in.Question, time.Time{}
	if ours := s.turn.announcement.Question; ours != nil {
		s.question.until = ours.Until
	}
	s.emit(ShowQuestion(in))
	s.question.audible = s.turn.lastSpoken == in.Question.Text
	if s.question.audible || s.turn.announcement.Question == nil { // else it has not sounded yet, and can be put off
		s.publishQuestion()
	}
}

func (in QuestionAnswered) step(s *stepper) {
	s.leaveHearing()
	s.publishQuestion()
	s.closeQuestion(in.Answer.Outcome)
	if in.Answer.Outcome != agent.AnswerClosed { // else the turn fails, and says why
		s.endInquiry(Ending{Answer: in.Answer})
	}
	if s.phase != speaking { // else the question still sounds, and its tts stop is to come
		s.phase = thinking
	}
}
