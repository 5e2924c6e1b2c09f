package dialogue

import (
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
)

// Tick reports that the time returned by Deadline has come.
type Tick struct{}

func (Tick) step(s *stepper) {
	switch {
	case s.phase == greeting:
		if hasPassed(s.now, s.channel.opened, helloTimeout) {
			s.close("no hello")
		}
		return
	case s.phase == hearing && (s.mic.hasStalled(s.now) || hasPassed(s.now, s.mic.utteranceBegan, s.maxUtterance)):
		s.endUtterance()
	case s.question.isWaiting() && !s.question.until.IsZero() && !s.now.Before(s.question.until):
		s.question.until = time.Time{}
		if s.phase == speaking {
			s.emit(CutQuestion{}) // nobody can answer the question any more
		}
		s.emit(AnswerQuestion{agent.Answer{Outcome: agent.AnswerExpired}})
		s.endUtterance() // after AnswerQuestion, so that an utterance cut off here cannot become the answer
	}
	expireQuestions(s)
	if idle := s.idleAt(); !idle.IsZero() && !s.now.Before(idle) {
		s.close("idle")
		return
	}
	if !s.channel.settled && hasPassed(s.now, s.channel.greeted, settleAfter) {
		s.markSettled()
	}
	if !s.mic.wokenAt.IsZero() && hasPassed(s.now, s.mic.wokenAt, listenAfter) {
		s.greet()
	}
	if !s.channel.introducedAt.IsZero() && hasPassed(s.now, s.channel.introducedAt, IntroduceEvery) {
		s.channel.introducedAt = s.now
		s.emit(Introduce{})
	}
	if !s.music.stopsAt.IsZero() && !s.now.Before(s.music.stopsAt) {
		s.stopMusic()
	}
	s.speakNext()
	if hasPassed(s.now, s.channel.sentAt, keepAliveEvery) {
		s.emit(Send{xiaozhi.KeepAlive{}})
	}
}

// expireQuestions ends the appliance's questions whose time is over although nobody could answer them
// yet. Tick itself ends the question that waits for an answer.
func expireQuestions(s *stepper) {
	s.endWaiting(withoutAnswer(agent.AnswerExpired), func(q *Question) bool { return q.isExpired(s.now) })
	if q := s.turn.announcement.Question; q != nil && !s.question.isWaiting() && q.isExpired(s.now) {
		s.endInquiry(withoutAnswer(agent.AnswerExpired))
		s.stopAsking()
	}
}

// Deadline returns when the state needs a Tick, or the zero time if it needs none.
func (s *State) Deadline() time.Time {
	switch s.phase {
	case closing:
		return time.Time{}
	case greeting:
		return s.channel.opened.Add(helloTimeout)
	}
	due := s.channel.sentAt.Add(keepAliveEvery)
	consider := func(t time.Time) {
		if !t.IsZero() && t.Before(due) {
			due = t
		}
	}
	if s.phase == hearing {
		if !s.mic.packetAt.IsZero() {
			consider(s.mic.packetAt.Add(stallTimeout))
		}
		consider(s.mic.utteranceBegan.Add(s.maxUtterance))
	}
	if s.question.isWaiting() {
		consider(s.question.until)
	} else if q := s.turn.announcement.Question; q != nil {
		consider(q.Until) // expires even if nobody could answer it yet
	}
	for _, a := range s.queue.waiting {
		if a.Question != nil {
			consider(a.Question.Until)
		}
		if (!s.turn.active || s.playsMusic()) && s.channel.settled {
			consider(s.queue.speakableFrom(a))
		}
	}
	if s.music.sound != nil && !s.turn.active && s.channel.settled && len(s.queue.waiting) == 0 {
		consider(s.musicFrom())
	}
	if !s.channel.settled {
		consider(s.channel.greeted.Add(settleAfter))
	}
	if !s.mic.wokenAt.IsZero() {
		consider(s.mic.wokenAt.Add(listenAfter))
	}
	if !s.channel.introducedAt.IsZero() {
		consider(s.channel.introducedAt.Add(IntroduceEvery))
	}
	consider(s.music.stopsAt)
	consider(s.idleAt())
	return due
}
