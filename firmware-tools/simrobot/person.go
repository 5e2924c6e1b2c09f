package simrobot

import (
	"fmt"
	"time"

	"perch/device/xiaozhi"
)

const (
	breath    = 300 * time.Millisecond // pause of the person before speaking
	press     = 200 * time.Millisecond // how long the button is down before and after speaking
	lastWords = 2 * time.Second        // of quiet, after which a robot without sentences hangs up
)

// person says each sentence when the previous one is answered, over all channels.
type person struct {
	sentences []Sentence
	next      int
	doing     activity
	speakAt   time.Time // zero while the robot does not listen
	deadline  time.Time // for the answer
	first     time.Time // first packet of the answer
	tried     bool      // the answer was interrupted, or was over before that
	overlap   bool      // the robot still plays the answer to the previous sentence
	cutIn     time.Time // when an answer was interrupted whose tts stop is missing
	cutTurn   int       // the turn of that answer
	turn      Turn
	before    Stats // when the turn started
}

type activity int

const (
	resting activity = iota
	speaking
	waiting
)

func (p *person) done() bool { return p.doing == resting && p.next == len(p.sentences) }

// advancePerson does what the person does now.
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
		over := s.state != Speaking && !s.draining && s.play.silent()
		switch {
		case (p.turn.Packets > 0 || p.turn.Interrupted) && over:
			s.endTurn(now)
			return s.maybeSpeak(now)
		case p.turn.Packets == 0 && !now.Before(p.deadline):
			s.endTurn(now)
			return fmt.Errorf("%w to %q within %v", ErrUnanswered, p.turn.Text, s.r.o.AnswerWithin)
		}
	}
	return nil
}

// maybeSpeak starts the next sentence when the robot has listened, or in manual mode been
// quiet, for the length of a breath.
func (s *session) maybeSpeak(now time.Time) error {
	p := &s.r.person
	listens := s.state == Listening && s.mic.open() && s.mode != xiaozhi.Manual || s.state == Idle && s.r.o.Mode == xiaozhi.Manual
	switch {
	case p.next == len(p.sentences) || !listens || !s.play.silent():
		p.speakAt = time.Time{}
		return nil
	case p.speakAt.IsZero():
		p.speakAt = now.Add(breath)
		return nil
	case now.Before(p.speakAt):
		return nil
	case s.stale && s.state == Idle:
		return s.pressButton(now) // opens a new channel, where the person starts again
	}
	return s.startSentence(now)
}

// startSentence starts the next sentence, after a press if the robot does not listen.
func (s *session) startSentence(now time.Time) error {
	p := &s.r.person
	sentence := p.sentences[p.next]
	p.doing, p.speakAt, p.first, p.tried = speaking, time.Time{}, time.Time{}, false
	p.turn, p.before = Turn{Text: sentence.Text}, s.r.stats
	s.r.o.Observe(Spoken{Text: sentence.Text})
	if s.r.o.Mode == xiaozhi.Manual && s.state != Listening {
		s.mic.startSpeech(sentence.PCM, press, press)
		return s.pressButton(now)
	}
	s.mic.startSpeech(sentence.PCM, 0, 0)
	return nil
}

// interrupted handles a robot that starts to speak during a sentence. After a
// transcript this is the answer; otherwise the person stops and repeats the sentence
// later.
func (s *session) interrupted(now time.Time) {
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

// recordAnswerPacket records a packet of the answer.
func (s *session) recordAnswerPacket(now time.Time) {
	p := &s.r.person
	if p.doing != waiting || p.overlap {
		return
	}
	if p.turn.Packets == 0 {
		p.first = now
		p.turn.FirstAudio = now.Sub(s.mic.spokeAt)
	}
	p.turn.Packets++
}

func (s *session) endTurn(now time.Time) {
	p, t := &s.r.person, &s.r.person.turn
	t.Answered = t.Packets > 0
	if t.Answered {
		t.Length = now.Sub(p.first)
	}
	t.Underruns = s.r.stats.Underruns - p.before.Underruns
	t.Dropped = s.r.stats.Dropped - p.before.Dropped
	s.r.stats.Turns = append(s.r.stats.Turns, *t)
	p.doing = resting
	p.next++
	s.r.o.Observe(TurnEnded{Turn: *t})
}

// nextAction returns when the person must act, or the zero time.
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
