package simrobot

import (
	"fmt"
	"time"

	"perch/device/xiaozhi"
)

const (
	breath       = 300 * time.Millisecond // pause of the person before a sentence
	pressMargin  = 200 * time.Millisecond // silence between the press of the button and the sentence, and before the release
	quietTimeout = 2 * time.Second        // if Options.Say is empty, the robot hangs up after this time without a text message
)

// person is the person who talks to the robot. The person says each sentence after the answer
// to the previous one, in one or more channels.
type person struct {
	sentences []Sentence
	next      int // index of the current sentence or, while the person is resting, of the next one
	doing     activity
	speakAt   time.Time // start of the next sentence; zero while the robot does not listen
	deadline  time.Time // latest time for the first packet of the answer
	turn      Turn      // the current turn
	before    Stats     // the robot's counters at the start of the turn

	firstPacket       time.Time // arrival of the answer's first packet
	interruptionTried bool      // the planned interruption of the answer was carried out, or came after the answer
	overlap           bool      // the robot is still playing the answer to the previous sentence
	interruptedAt     time.Time // time of an interruption; zero once the server has responded with tts stop
	interruptedTurn   int       // index of the interrupted turn in Stats.Turns
}

// activity is what the person is doing.
type activity int

const (
	resting  activity = iota // between two turns
	speaking                 // saying a sentence
	waiting                  // waiting for the answer, or for the end of the answer
)

// isDone reports whether all sentences were said and answered.
func (p *person) isDone() bool { return p.doing == resting && p.next == len(p.sentences) }

// advancePerson carries out the actions of the person that are due by now.
func (s *session) advancePerson(now time.Time) error {
	p := &s.r.person
	switch p.doing {
	case resting:
		return s.maybeSpeak(now)
	case speaking:
		if s.mic.at < len(s.mic.speech) {
			return nil
		}
		p.doing, p.deadline = waiting, now.Add(s.r.o.AnswerWithin)
		if s.mode == xiaozhi.Manual {
			return s.release(now)
		}
	case waiting:
		if err := s.maybeInterrupt(now); err != nil || p.doing != waiting {
			return err
		}
		isOver := s.state != Speaking && !s.draining && s.play.isSilent()
		switch {
		case (p.turn.Packets > 0 || p.turn.Interrupted) && isOver:
			s.endTurn(now)
			return s.maybeSpeak(now)
		case p.turn.Packets == 0 && !now.Before(p.deadline):
			s.endTurn(now)
			return fmt.Errorf("%w to %q within %v", ErrUnanswered, p.turn.Text, s.r.o.AnswerWithin)
		}
	}
	return nil
}

// maybeSpeak starts the next sentence once the robot has been listening (or idle, in manual
// mode) for the duration breath.
func (s *session) maybeSpeak(now time.Time) error {
	p := &s.r.person
	isReady := s.state == Listening && s.mic.isOpen() && s.mode != xiaozhi.Manual || s.state == Idle && s.r.o.Mode == xiaozhi.Manual
	switch {
	case p.next == len(p.sentences) || !isReady || !s.play.isSilent():
		p.speakAt = time.Time{}
		return nil
	case p.speakAt.IsZero():
		p.speakAt = now.Add(breath)
		return nil
	case now.Before(p.speakAt):
		return nil
	case s.stale && s.state == Idle:
		return s.pressButton(now) // returns an *opening; the person says the sentence in the new channel
	}
	return s.startSentence(now)
}

// startSentence starts the next sentence and its turn. In manual mode the person first presses the
// button.
func (s *session) startSentence(now time.Time) error {
	p := &s.r.person
	sentence := p.sentences[p.next]
	p.doing, p.speakAt, p.firstPacket, p.interruptionTried = speaking, time.Time{}, time.Time{}, false
	p.turn, p.before = Turn{Text: sentence.Text}, s.r.stats
	s.r.o.Observe(Spoken{Text: sentence.Text})
	if s.r.o.Mode == xiaozhi.Manual && s.state != Listening {
		s.mic.startSpeech(sentence.PCM, pressMargin, pressMargin)
		return s.pressButton(now)
	}
	s.mic.startSpeech(sentence.PCM, 0, 0)
	return nil
}

// robotInterrupted is called when the robot starts to speak. If the person is speaking, the person
// stops. If the server has already sent a transcript of the sentence, the robot's speech is the
// answer. Otherwise the person repeats the sentence later.
func (s *session) robotInterrupted(now time.Time) {
	p := &s.r.person
	if p.doing != speaking {
		return
	}
	s.mic.stopSpeech(now)
	p.doing = resting
	if p.turn.Transcript != "" {
		p.doing, p.deadline = waiting, now.Add(s.r.o.AnswerWithin)
	}
}

// recordAnswerPacket records that a packet of the answer has arrived.
func (s *session) recordAnswerPacket(now time.Time) {
	p := &s.r.person
	if p.doing != waiting || p.overlap {
		return
	}
	if p.turn.Packets == 0 {
		p.firstPacket = now
		p.turn.FirstAudio = now.Sub(s.mic.spokeAt)
	}
	p.turn.Packets++
}

// endTurn ends the current turn and adds it to Stats.Turns.
func (s *session) endTurn(now time.Time) {
	p, t := &s.r.person, &s.r.person.turn
	t.Answered = t.Packets > 0
	if t.Answered {
		t.Length = now.Sub(p.firstPacket)
	}
	t.Underruns = s.r.stats.Underruns - p.before.Underruns
	t.Dropped = s.r.stats.Dropped - p.before.Dropped
	s.r.stats.Turns = append(s.r.stats.Turns, *t)
	p.doing = resting
	p.next++
	s.r.o.Observe(TurnEnded{Turn: *t})
}

// nextAction returns the time of the person's next action, or the zero time if no action is
// planned.
func (p *person) nextAction() time.Time {
	switch {
	case p.doing != waiting:
		return p.speakAt
	case p.turn.Packets == 0:
		return p.deadline
	}
	at, _ := p.interruption()
	return at
}
