package robot

import (
	"slices"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
)

// fromHouse is what others of the house want of the robot.
func (s *stepper) fromHouse(in input) {
	switch in := in.(type) {
	case tell:
		s.tell(in)
	case show:
		s.show(in)
	case feel:
		s.do(send{xiaozhi.LLM{Emotion: in.emotion.Name, Text: in.emotion.Emoji}},
			publish{event.Emotion{Name: in.emotion.Name, Emoji: in.emotion.Emoji}})
	case hear:
		if s.phase != greeting {
			s.interrupt(false)
			s.begin(turnStart{text: in.text})
		}
	case silent:
		if s.phase != greeting {
			s.interrupt(true)
		}
	case hold:
		s.heldUntil = in.until
	case reboot:
		s.do(send{xiaozhi.Reboot{}})
	}
}

// tell says something at once, or after the turn under way. What is urgent
// comes before all else and does not wait, but for a question: to cut that
// off would answer it.
func (s *stepper) tell(in tell) {
	if in.notice != "" {
		if s.turn && s.telling.notice == in.notice {
			return // it is being told
		}
		s.toSay = slices.DeleteFunc(slices.Clone(s.toSay), func(t telling) bool { return t.notice == in.notice })
	}
	waiting := s.toSay
	switch {
	case len(waiting) >= mostToSay && in.notice == "":
		s.do(publish{event.Command{Thing: "say", State: event.CommandRejected, Reason: "too much waits to be said"}})
	case len(waiting) >= 2*mostToSay: // a notification is kept elsewhere, and offered again
	case in.urgent:
		s.toSay = append([]telling{in.telling}, waiting...)
		if s.settled && s.turn && !s.asking {
			s.interrupt(false)
		}
	default:
		s.toSay = append(waiting[:len(waiting):len(waiting)], in.telling)
	}
	s.sayWaiting()
}

// sayWaiting says what has waited for a turn to end.
func (s *stepper) sayWaiting() {
	if s.turn || !s.settled || len(s.toSay) == 0 {
		return
	}
	first := s.toSay[0]
	s.toSay = s.toSay[1:]
	s.begin(turnStart{telling: first})
}

// show puts something on the robot's screen, whatever it is doing.
func (s *stepper) show(in show) {
	s.do(send{in.alert})
	if in.notice != "" {
		s.do(publish{event.NotificationChanged{ID: in.notice, State: agent.NoticeShown}})
	}
}

func (s *stepper) close(why string) {
	if s.turn {
		s.answered(agent.AnswerClosed)
		s.do(cancelTurn{}, publish{event.TurnEnded{End: event.EndCancelled}})
		if !s.begun && s.telling.text != "" {
			s.toSay = append([]telling{s.telling}, s.toSay...)
		}
	}
	s.phase, s.turn = closing, false
	s.do(closeChannel{why})
}

// tick is the time that due gave.
func (s *stepper) tick() {
	switch {
	case s.phase == greeting:
		if passed(s.now, s.opened, s.timing.hello) {
			s.close("no hello")
		}
		return
	case s.phase == hearing && (passed(s.now, s.packetAt, s.stalled) || passed(s.now, s.began, s.longest)):
		s.utteranceOver()
	case s.asking && !s.askedUntil.IsZero() && !s.now.Before(s.askedUntil):
		s.askedUntil = time.Time{}
		if s.phase == hearing {
			s.utteranceOver() // too late, but whoever listens to it must end
		}
		s.do(answerAsk{agent.Answer{Outcome: agent.AnswerExpired}})
	}
	if idle := s.idleAt(); !idle.IsZero() && !s.now.Before(idle) {
		s.close("idle")
		return
	}
	if !s.settled && passed(s.now, s.greeted, settleAfter) {
		s.settle()
	}
	if !s.woken.IsZero() && passed(s.now, s.woken, listenAfter) {
		s.greet()
	}
	if !s.introduced.IsZero() && passed(s.now, s.introduced, introduceEvery) {
		s.introduced = s.now
		s.do(introduce{})
	}
	if passed(s.now, s.fed, feedEvery) {
		s.do(send{xiaozhi.KeepAlive{}})
	}
}

// idleAt is when a talk in which nothing happens is hung up, and the zero time
// where it is not. A robot that sends events opens its channel again at once,
// and would flap.
func (s *state) idleAt() time.Time {
	if s.idle == 0 || s.turn || s.sensing || s.phase == greeting || s.phase == closing {
		return time.Time{}
	}
	at := s.understood.Add(s.idle)
	if at.Before(s.heldUntil) {
		return s.heldUntil
	}
	return at
}

func passed(now, from time.Time, d time.Duration) bool { return !now.Before(from.Add(d)) }

// due is when the state needs a tick, and the zero time when it needs none.
func (s *state) due() time.Time {
	switch s.phase {
	case closing:
		return time.Time{}
	case greeting:
		return s.opened.Add(s.timing.hello)
	}
	due := s.fed.Add(feedEvery)
	earliest := func(t time.Time) {
		if !t.IsZero() && t.Before(due) {
			due = t
		}
	}
	if s.phase == hearing {
		earliest(s.packetAt.Add(s.stalled))
		earliest(s.began.Add(s.longest))
	}
	if s.asking {
		earliest(s.askedUntil)
	}
	if !s.settled {
		earliest(s.greeted.Add(settleAfter))
	}
	if !s.woken.IsZero() {
		earliest(s.woken.Add(listenAfter))
	}
	if !s.introduced.IsZero() {
		earliest(s.introduced.Add(introduceEvery))
	}
	earliest(s.idleAt())
	return due
}
