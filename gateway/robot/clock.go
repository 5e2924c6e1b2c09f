package robot

import (
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
)

// step is called at the time that due returned.
func (tick) step(s *stepper) {
	switch {
	case s.phase == greeting:
		if passed(s.now, s.channel.opened, s.limits.hello) {
			s.close("no hello")
		}
		return
	case s.phase == hearing && (s.hasStalled() || passed(s.now, s.mic.utteranceBegan, s.limits.longest)):
		s.utteranceOver()
	case s.question.waits() && !s.question.until.IsZero() && !s.now.Before(s.question.until):
		s.question.until = time.Time{}
		if s.phase == speaking {
			s.do(cutQuestion{}) // it cannot be answered any more
		}
		s.do(answerQuestion{agent.Answer{Outcome: agent.AnswerExpired}})
		s.utteranceOver() // told second: what its end cuts off is no answer, however soon it is recognized
	}
	s.expire()
	if idle := s.idleAt(); !idle.IsZero() && !s.now.Before(idle) {
		s.close("idle")
		return
	}
	if !s.channel.settled && passed(s.now, s.channel.greeted, settleAfter) {
		s.settle()
	}
	if !s.mic.wokenAt.IsZero() && passed(s.now, s.mic.wokenAt, listenAfter) {
		s.greet()
	}
	if !s.channel.introducedAt.IsZero() && passed(s.now, s.channel.introducedAt, introduceEvery) {
		s.channel.introducedAt = s.now
		s.do(introduce{})
	}
	s.sayWaiting()
	if passed(s.now, s.channel.sentAt, feedEvery) {
		s.do(send{xiaozhi.KeepAlive{}})
	}
}

// idleAt is when an idle channel is hung up; the zero time is never. A robot that
// sends events would open its channel again at once.
func (s *state) idleAt() time.Time {
	if s.limits.idle == 0 || s.turn.active || s.channel.sensing || s.phase == greeting || s.phase == closing {
		return time.Time{}
	}
	at := s.channel.activeAt.Add(s.limits.idle)
	if held := s.channel.heldUntil.Add(holdMargin); !s.channel.heldUntil.IsZero() && at.Before(held) {
		return held
	}
	return at
}

// hasStalled reports whether an utterance has had packets, and they have stopped.
func (s *stepper) hasStalled() bool {
	return !s.mic.packetAt.IsZero() && passed(s.now, s.mic.packetAt, s.limits.stalled)
}

func passed(now, from time.Time, d time.Duration) bool { return !now.Before(from.Add(d)) }

// due is when the state needs a tick, and the zero time when it needs none.
func (s *state) due() time.Time {
	switch s.phase {
	case closing:
		return time.Time{}
	case greeting:
		return s.channel.opened.Add(s.limits.hello)
	}
	due := s.channel.sentAt.Add(feedEvery)
	earliest := func(t time.Time) {
		if !t.IsZero() && t.Before(due) {
			due = t
		}
	}
	if s.phase == hearing {
		if !s.mic.packetAt.IsZero() {
			earliest(s.mic.packetAt.Add(s.limits.stalled))
		}
		earliest(s.mic.utteranceBegan.Add(s.limits.longest))
	}
	if s.question.waits() {
		earliest(s.question.until)
	}
	s.expires(earliest)
	if !s.channel.settled {
		earliest(s.channel.greeted.Add(settleAfter))
	}
	if !s.mic.wokenAt.IsZero() {
		earliest(s.mic.wokenAt.Add(listenAfter))
	}
	if !s.channel.introducedAt.IsZero() {
		earliest(s.channel.introducedAt.Add(introduceEvery))
	}
	if !s.turn.active && s.channel.settled {
		for _, t := range s.queue.waiting {
			earliest(s.speakableFrom(t))
		}
	}
	earliest(s.idleAt())
	return due
}
