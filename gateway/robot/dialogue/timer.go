package dialogue

import (
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
)

// Tick says that the time has come which Deadline returned.
type Tick struct{}

func (Tick) step(s *stepper) {
	switch {
	case s.phase == greeting:
		if passed(s.now, s.channel.opened, helloWithin) {
			s.close("no hello")
		}
		return
	case s.phase == hearing && (s.mic.stalled(s.now) || passed(s.now, s.mic.utteranceBegan, s.longest)):
		s.endUtterance()
	case s.question.waits() && !s.question.until.IsZero() && !s.now.Before(s.question.until):
		s.question.until = time.Time{}
		if s.phase == speaking {
			s.emit(CutQuestion{}) // it cannot be answered any more
		}
		s.emit(AnswerQuestion{agent.Answer{Outcome: agent.AnswerExpired}})
		s.endUtterance() // second: what its end cuts off is no answer, however soon it is recognized
	}
	expireQuestions(s)
	if idle := s.idleAt(); !idle.IsZero() && !s.now.Before(idle) {
		s.close("idle")
		return
	}
	if !s.channel.settled && passed(s.now, s.channel.greeted, settleAfter) {
		s.connected()
	}
	if !s.mic.wokenAt.IsZero() && passed(s.now, s.mic.wokenAt, listenAfter) {
		s.greet()
	}
	if !s.channel.introducedAt.IsZero() && passed(s.now, s.channel.introducedAt, IntroduceEvery) {
		s.channel.introducedAt = s.now
		s.emit(Introduce{})
	}
	s.speakNext()
	if passed(s.now, s.channel.sentAt, feedEvery) {
		s.emit(Send{xiaozhi.KeepAlive{}})
	}
}

// expireQuestions ends questions of the appliance whose time is over before they could be
// answered. A question that can be answered is answered by the end of its time.
func expireQuestions(s *stepper) {
	s.endWaiting(endedBy(agent.AnswerExpired), func(q *Question) bool { return q.expired(s.now) })
	if q := s.turn.announcement.Question; q != nil && !s.question.waits() && q.expired(s.now) {
		s.endInquiry(endedBy(agent.AnswerExpired))
		s.stopAsking()
	}
}

// Deadline returns when the state needs a Tick. The zero time is never.
func (s *State) Deadline() time.Time {
	switch s.phase {
	case closing:
		return time.Time{}
	case greeting:
		return s.channel.opened.Add(helloWithin)
	}
	due := s.channel.sentAt.Add(feedEvery)
	earliest := func(t time.Time) {
		if !t.IsZero() && t.Before(due) {
			due = t
		}
	}
	if s.phase == hearing {
		if !s.mic.packetAt.IsZero() {
			earliest(s.mic.packetAt.Add(stalledAfter))
		}
		earliest(s.mic.utteranceBegan.Add(s.longest))
	}
	if s.question.waits() {
		earliest(s.question.until)
	} else if q := s.turn.announcement.Question; q != nil {
		earliest(q.Until) // it cannot be answered yet
	}
	for _, a := range s.queue.waiting {
		if a.Question != nil {
			earliest(a.Question.Until)
		}
		if !s.turn.active && s.channel.settled {
			earliest(s.queue.speakableFrom(a))
		}
	}
	if !s.channel.settled {
		earliest(s.channel.greeted.Add(settleAfter))
	}
	if !s.mic.wokenAt.IsZero() {
		earliest(s.mic.wokenAt.Add(listenAfter))
	}
	if !s.channel.introducedAt.IsZero() {
		earliest(s.channel.introducedAt.Add(IntroduceEvery))
	}
	earliest(s.idleAt())
	return due
}
