package robot

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/door"
)

// ErrBusy is returned where too much waits already to be said by a robot.
var ErrBusy error = &door.Fault{Word: "robot_busy", HTTP: http.StatusConflict,
	Sentence: "too much waits to be said by the robot; ask again when it has said some of it"}

// inquiry is a question of the house to whoever is with a robot.
type inquiry struct {
	agent.Question
	ended chan ending // with room for one
}

// ending is how an inquiry ended: by an answer, or an error.
type ending struct {
	answer agent.Answer
	err    error
}

// Inputs of an inquiry.
type (
	ask      struct{ about *inquiry }
	withdraw struct{ about *inquiry }
)

func (ask) input()      {}
func (withdraw) input() {}

// endInquiry tells whoever has asked how it ended. Each inquiry that is not
// withdrawn has one.
type endInquiry struct {
	about *inquiry
	ending
}

func (endInquiry) effect() {}

// Ask has a robot ask people something, after the turn under way and what waits
// to be told, and waits for the answer: the next words, a touch of the head, the
// owner's Reply, or AnswerExpired once q.Until is over, be it asked by then or
// not. AnswerClosed is somebody who made the robot be quiet. Who interrupts
// before the question is heard puts it off, and the end of ctx withdraws it. Of
// q the ID, Session and Asked may be empty. Errors are ErrOffline where the
// robot's channel is closed, or closes before there is an answer; ErrBusy; what
// kept the robot from asking; and ctx's.
func (s *Server) Ask(ctx context.Context, id device.ID, q agent.Question) (agent.Answer, error) {
	r, err := s.session(id)
	if err != nil {
		return agent.Answer{}, err
	}
	text, err := speakable(q.Text)
	if err != nil {
		return agent.Answer{}, err
	}
	if err := ctx.Err(); err != nil {
		return agent.Answer{}, err
	}
	q.ID, q.Text, q.Robot, q.Session = cmp.Or(q.ID, "house-"+rand.Text()), text, id, cmp.Or(q.Session, r.id)
	if q.Asked.IsZero() {
		q.Asked = time.Now()
	}
	about := &inquiry{q, make(chan ending, 1)}
	if err := r.post(ctx, ask{about}); err != nil && ctx.Err() == nil {
		return agent.Answer{}, err
	}
	select {
	case e := <-about.ended:
		return e.answer, e.err
	case <-ctx.Done():
	}
	// A session that has ended meanwhile has withdrawn it already.
	_ = r.post(s.ctx, withdraw{about})
	select {
	case e := <-about.ended: // the answer came first
		return e.answer, e.err
	default:
		return agent.Answer{}, ctx.Err()
	}
}

// ask has an inquiry wait for its turn.
func (s *stepper) ask(about *inquiry) {
	switch {
	case s.phase == greeting:
		s.do(endInquiry{about, ending{err: ErrOffline}})
	case about.over(s.now):
		s.do(endInquiry{about, endedBy(agent.AnswerExpired)})
	case len(s.toSay) >= mostToSay:
		s.do(endInquiry{about, ending{err: ErrBusy}})
	default:
		s.toSay = append(s.toSay[:len(s.toSay):len(s.toSay)], telling{question: about})
		s.sayWaiting()
	}
}

// withdraw takes an inquiry back, which waits or is being put.
func (s *stepper) withdraw(about *inquiry) {
	s.toSay = slices.DeleteFunc(slices.Clone(s.toSay), func(t telling) bool { return t.question == about })
	if s.turn && s.telling.question == about {
		s.telling = telling{}
		s.stopAsking()
	}
}

// stopAsking stops an inquiry being put. Nobody has interrupted, so what waits
// is told at once, unless somebody is answering already.
func (s *stepper) stopAsking() {
	if s.phase == hearing {
		s.yields = s.now.Add(yieldFor)
	}
	s.halt(false)
	s.sayWaiting()
}

// conclude tells whoever has asked how the inquiry being put has ended. Who has
// answered gets his time to talk on.
func (s *stepper) conclude(e ending) {
	if s.telling.question == nil {
		return
	}
	s.do(endInquiry{s.telling.question, e})
	s.telling, s.understood = telling{}, s.now
}

// concludeFailed is conclude at the end of a turn, where there was no answer.
func (s *stepper) concludeFailed(reason string) {
	e := endedBy(agent.AnswerClosed)
	if reason != "" {
		e = ending{err: errors.New("ask: " + reason)}
	}
	s.conclude(e)
}

// endedBy is the end of an inquiry that nobody has answered.
func endedBy(o agent.Outcome) ending { return ending{answer: agent.Answer{Outcome: o}} }

// concludeAll ends what is being put and what waits, with the channel.
func (s *stepper) concludeAll() {
	gone := ending{err: ErrOffline}
	s.conclude(gone)
	for _, t := range s.toSay {
		if t.question != nil {
			s.do(endInquiry{t.question, gone})
		}
	}
	s.toSay = slices.DeleteFunc(slices.Clone(s.toSay), func(t telling) bool { return t.question != nil })
}

// expire ends inquiries whose time is over before they could be answered. One
// that can be is answered by the end of its time.
func (s *stepper) expire() {
	late := func(t telling) bool { return t.question != nil && t.question.over(s.now) }
	if slices.ContainsFunc(s.toSay, late) {
		for _, t := range s.toSay {
			if late(t) {
				s.do(endInquiry{t.question, endedBy(agent.AnswerExpired)})
			}
		}
		s.toSay = slices.DeleteFunc(slices.Clone(s.toSay), late)
	}
	if s.turn && !s.asking && late(s.telling) {
		s.conclude(endedBy(agent.AnswerExpired))
		s.stopAsking()
	}
}

// expires calls at with each time at which an inquiry expires that cannot be
// answered yet.
func (s *state) expires(at func(time.Time)) {
	if s.turn && !s.asking && s.telling.question != nil {
		at(s.telling.question.Until)
	}
	for _, t := range s.toSay {
		if t.question != nil {
			at(t.question.Until)
		}
	}
}

// over reports whether the time for an answer is.
func (q *inquiry) over(now time.Time) bool { return !now.Before(q.Until) }

// asked is a question that waits for an answer from now on.
func (s *stepper) asked(q *agent.Question) {
	s.asking, s.question, s.askedUntil = true, q, time.Time{}
	if ours := s.telling.question; ours != nil {
		s.askedUntil = ours.Until
	}
	s.do(showQuestion{q})
	s.put = s.lastSaid == q.Text
	if s.put || s.telling.question == nil { // else nobody has heard it, and it can be put off
		s.announce()
	}
}

// announce tells of the question that waits for an answer, once.
func (s *stepper) announce() {
	if s.asking && !s.announced {
		s.announced = true
		s.do(publish{event.Asked{ID: s.question.ID, Text: s.question.Text}})
	}
}

// answered ends a question, however it ended.
func (s *stepper) answered(outcome agent.Outcome) {
	if s.announced {
		s.do(publish{event.Answered{ID: s.question.ID, Answer: string(outcome)}})
	}
	s.asking, s.put, s.announced, s.question, s.askedUntil = false, false, false, nil, time.Time{}
	s.lastSaid = "" // the same question once more is another
}

// paused is a question put, its speech played or cut off.
func (s *stepper) paused(askFor time.Duration) {
	s.unasked = time.Time{} // a microphone that opens now, opens for the answer
	if s.mode == xiaozhi.Realtime {
		s.openUp()
	}
	if s.phase != ready && s.phase != hearing { // else somebody answers already
		s.phase = thinking // a touch may have answered
		if s.asking {
			s.again() // in realtime the microphone is open, and nothing more will say so
		}
	}
	if s.asking {
		s.put, s.askedUntil = true, s.now.Add(askFor)
		s.announce()
		if q := s.telling.question; q != nil {
			s.askedUntil = q.Until
		}
	}
}

// decide answers the question that waits, if it is the one that was meant.
func (s *stepper) decide(in decide) {
	if !s.asking || s.question.ID != in.id {
		return
	}
	outcome := agent.AnswerDenied
	if in.allow {
		outcome = agent.AnswerAllowed
	}
	s.do(answerAsk{agent.Answer{Outcome: outcome}})
}
