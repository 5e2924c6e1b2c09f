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
	// Packet reports a packet of the robot's sound. The input is a *Packet that the session reuses,
	// so that packets cause no allocation.
	Packet struct {
		Duration time.Duration // duration of the sound
		Muted    bool          // the owner has muted the robot's microphone
	}
	// SpeechBegan reports that the end-pointer has found the beginning of speech.
	SpeechBegan struct{}
	// SpeechEnded reports that the end-pointer has found the end of speech.
	SpeechEnded struct{}

	// Transcript reports the words that the turn's recognizer has understood.
	Transcript struct{ Text string }
	// Misheard reports that an utterance was not understood. Silence is as in voice.Transcript.
	Misheard struct{ Silence bool }
	// TurnFinished reports that the turn has queued all its speech. End is as in event.TurnEnded, or
	// empty if there was nothing to answer, as after a noise. Reason says why a turn has failed.
	TurnFinished struct{ End, Reason string }

	// Progress reports what the player has done with the turn's speech since the last Progress.
	Progress struct {
		Started bool          // tts start was sent
		Began   bool          // the turn's first packet was sent
		Spoken  []string      // sentences whose first packet was sent
		Gesture string        // latest gesture that the speech has reached; empty if it has reached no gesture
		Stopped bool          // the speech has stopped for a question
		Paused  bool          // the speech has stopped for a question, and not started again
		AskFor  time.Duration // how long the question waits for an answer; set if Stopped is
		Drained bool          // the robot has played all speech
	}
)

// step begins to listen to a stream of sound that continues without a listen start; see isStreaming.
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
	s.mic.misheard, s.mic.excused, s.channel.activeAt = 0, false, s.now
	isAnswer := s.question.isWaiting()
	if !isAnswer {
		s.turn.understood = true
		s.emit(KeepTranscript(in))
	}
	s.emit(Send{xiaozhi.STT{Text: in.Text}}, Publish{event.Heard{Text: in.Text}})
	if !isAnswer && s.mic.voiced { // the person has continued to speak during the recognition
		s.beginUtterance()
	}
}

// step shows that an utterance was not understood. If several utterances in a row are not
// understood, only the first that is not silence is also answered aloud (TurnStart.Aloud): otherwise a
// television could make the robot talk forever.
func (in Misheard) step(s *stepper) {
	s.mic.misheard++
	s.mic.excused = s.mic.excused || !in.Silence
	s.emit(Send{xiaozhi.STT{Text: "…"}}, Publish{event.Misheard{}})
	if s.question.isWaiting() && s.phase != hearing { // in phase hearing, the next answer is being spoken already
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
	if p.Stopped { // also if the pause is over already
		s.mic.expectResume(s.now)
	}
	if p.Started {
		p.handleStart(s)
	}
	if p.Began {
		p.handleFirstPacket(s)
	}
	if p.Gesture != "" {
		s.emit(Publish{event.Gesture{Name: p.Gesture, By: event.ByModel}})
	}
	for _, text := range p.Spoken {
		s.emit(Publish{event.Said{Text: text}})
		s.turn.lastSpoken = text
		if s.question.isWaiting() && text == s.question.asked.Text {
			s.question.audible = true
			s.publishQuestion()
		}
	}
	if p.Paused {
		p.handlePause(s)
	}
	if p.Drained {
		s.turn.drained = true
		s.endIfDone()
	}
}

// handleStart handles a tts start that was sent.
func (Progress) handleStart(s *stepper) {
	s.leaveHearing()
	s.phase = speaking
	if !s.turn.begun && !s.turn.unsolicitedUntil.IsZero() {
		s.turn.unsolicitedUntil = s.now.Add(unsolicitedFor)
	}
	if s.mic.mode == xiaozhi.Realtime {
		s.emit(ResetInput{}) // speech from now on is an interruption
	} else {
		s.mic.listening = false // tts start makes the robot close its microphone
	}
}

// handleFirstPacket handles the turn's first packet that was sent.
func (Progress) handleFirstPacket(s *stepper) {
	s.turn.begun = true
	switch sound := s.turn.announcement.Sound; {
	case sound == nil:
		s.emit(Publish{event.SpeakingStarted{}})
	case sound.Music == nil:
		s.emit(Publish{event.SoundStarted{Name: sound.Name}})
	default:
		s.music.begun = s.playsMusic()
		s.emit(Publish{event.Music{Name: sound.Name, State: event.MusicPlaying}})
	}
	switch a := s.turn.announcement; {
	case a.Notice != "":
		s.emit(Publish{event.NotificationChanged{ID: a.Notice, State: notice.Shown}})
	case a.Text != "":
		s.emit(Publish{event.Speech{Text: a.Text, State: event.SpeechSpeaking}})
	}
}

// handlePause handles the pause after a question that was played or cut off.
func (p Progress) handlePause(s *stepper) {
	s.turn.unsolicitedUntil = time.Time{} // a microphone that opens from now on opens for the answer
	if s.mic.mode == xiaozhi.Realtime {
		s.openMicrophone()
	}
	if s.phase != ready && s.phase != hearing { // in these phases somebody answers already
		s.phase = thinking // remains if a touch has answered in the meantime
		if s.question.isWaiting() {
			s.resumeListening() // in realtime mode no listen start follows
		}
	}
	if s.question.isWaiting() {
		s.question.audible, s.question.until = true, s.now.Add(p.AskFor)
		s.publishQuestion()
		if q := s.turn.announcement.Question; q != nil {
			s.question.until = q.Until
		}
	}
}

// Inputs of a question that the turn asks.
type (
	// QuestionPut reports that the turn asks a question, which waits for an answer from now on.
	QuestionPut struct{ Question *agent.Question }
	// QuestionAnswered reports that the turn has received the answer and continues with it.
	QuestionAnswered struct{ Answer agent.Answer }
)

func (in QuestionPut) step(s *stepper) {
	s.question.asked, s.question.until = in.Question, time.Time{}
	if q := s.turn.announcement.Question; q != nil {
		s.question.until = q.Until
	}
	s.emit(ShowQuestion(in))
	s.question.audible = s.turn.lastSpoken == in.Question.Text
	if s.question.audible || s.turn.announcement.Question == nil { // the appliance's question can be postponed until it is audible
		s.publishQuestion()
	}
}

func (in QuestionAnswered) step(s *stepper) {
	s.leaveHearing()
	s.publishQuestion()
	s.closeQuestion(in.Answer.Outcome)
	if in.Answer.Outcome != agent.AnswerClosed { // otherwise the turn fails, and its end reports why
		s.endInquiry(Ending{Answer: in.Answer})
	}
	if s.phase != speaking { // in phase speaking, the question is still playing, and tts stop follows
		s.phase = thinking
	}
}
