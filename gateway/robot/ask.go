package robot

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/door"
)

// ErrBusy is returned where a robot has too much to speak already.
var ErrBusy error = &door.Fault{Word: "robot_busy", HTTP: http.StatusConflict,
	Sentence: "too much waits to be said by the robot; ask again when it has said some of it"}

// inquiry is a question that the appliance asks the people near a robot.
type inquiry struct {
	agent.Question
	ended chan ending // with a slot for one
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

// endInquiry returns its end to the caller of Ask, unless it is withdrawn.
type endInquiry struct {
	about *inquiry
	ending
}

func (e endInquiry) perform(context.Context, *loop) { e.about.ended <- e.ending } // there is a slot

// Ask has a robot ask people something, after the turn under way and what waits
// to be spoken, and waits for the answer: the next words, a touch of the head, the
// owner's Reply, or AnswerExpired once q.Until is over, be it asked by then or
// not. AnswerClosed is somebody who made the robot be quiet. Who interrupts
// before the question is heard puts it off, and the end of ctx withdraws it. Of
// q the ID, Session and Asked may be empty. Errors are ErrOffline where the
// robot's channel is closed, or closes before there is an answer; ErrBusy; what
// kept the robot from asking; and ctx's.
func (s *Server) Ask(ctx context.Context, id device.ID, q agent.Question) (agent.Answer, error) {
	text, err := speakable(q.Text)
	if err != nil {
		return agent.Answer{}, err
	}
	r, err := s.awake(ctx, id, q, text)
	switch {
	case errors.Is(err, errExpired):
		return agent.Answer{Outcome: agent.AnswerExpired}, nil
	case err != nil:
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

var errExpired = errors.New("the question's time is over")

// awake is the session of a robot. One that can be made to speak between talks
// is told the question, and how to wake it, and the talk that follows is waited for.
func (s *Server) awake(ctx context.Context, id device.ID, q agent.Question, text string) (*running, error) {
	r, err := s.session(id)
	k := s.linkOf(id)
	if err == nil || k == nil || !k.speaks() {
		return r, err
	}
	if !q.Until.IsZero() {
		within, cancel := context.WithDeadlineCause(ctx, q.Until, errExpired)
		defer cancel()
		ctx = within
	}
	events := s.options.Bus.Read()
	k.teller.add(announcement{text: text, urgent: true, hint: true})
	for {
		e, err := events.Next(ctx)
		if err != nil {
			k.teller.withdraw(text)
			return nil, cmp.Or(context.Cause(ctx), err)
		}
		switch e.Event.(type) {
		case event.RobotOnline:
			if e.Robot == id {
				return s.session(id)
			}
		case event.RobotDisconnected:
			if e.Robot == id {
				return nil, ErrOffline
			}
		}
	}
}

// step has an inquiry wait for its turn.
func (in ask) step(s *stepper) {
	switch about := in.about; {
	case s.phase == greeting:
		s.do(endInquiry{about, ending{err: ErrOffline}})
	case about.over(s.now):
		s.do(endInquiry{about, endedBy(agent.AnswerExpired)})
	case len(s.queue.waiting) >= mostQueued:
		s.do(endInquiry{about, ending{err: ErrBusy}})
	default:
		s.queue.push(announcement{question: about})
		s.sayWaiting()
	}
}

// step takes an inquiry back, which waits or is being put.
func (in withdraw) step(s *stepper) {
	s.queue.remove(func(a announcement) bool { return a.question == in.about })
	if s.turn.announcement.question == in.about {
		s.turn.announcement = announcement{}
		s.stopAsking()
	}
}

// stopAsking stops an inquiry being put. It was not interrupted, so what waits
// is spoken at once, unless somebody is answering already.
func (s *stepper) stopAsking() {
	if s.phase == hearing {
		s.queue.yieldsUntil = s.now.Add(yieldFor)
	}
	s.halt(false)
	s.sayWaiting()
}

// conclude returns to the caller of Ask how the inquiry being put has ended. A
// person who has answered gets time to talk on.
func (s *stepper) conclude(e ending) {
	if s.turn.announcement.question == nil {
		return
	}
	s.do(endInquiry{s.turn.announcement.question, e})
	s.turn.announcement, s.channel.activeAt = announcement{}, s.now
}

// concludeFailed is conclude at the end of a turn, where there was no answer.
func (s *stepper) concludeFailed(reason string) {
	e := endedBy(agent.AnswerClosed)
	if reason != "" {
		e = ending{err: errors.New("ask: " + reason)}
	}
	s.conclude(e)
}

// endedBy is the end of an inquiry without an answer.
func endedBy(o agent.Outcome) ending { return ending{answer: agent.Answer{Outcome: o}} }

// concludeAll ends what is being put and what waits, with the channel.
func (s *stepper) concludeAll() {
	gone := ending{err: ErrOffline}
	s.conclude(gone)
	s.endWaiting(gone, func(*inquiry) bool { return true })
}

// endWaiting ends inquiries that wait for their turn.
func (s *stepper) endWaiting(e ending, which func(*inquiry) bool) {
	for _, a := range s.queue.remove(func(a announcement) bool { return a.question != nil && which(a.question) }) {
		s.do(endInquiry{a.question, e})
	}
}

// expire ends inquiries whose time is over before they could be answered. One
// that can be is answered by the end of its time.
func (s *stepper) expire() {
	s.endWaiting(endedBy(agent.AnswerExpired), func(q *inquiry) bool { return q.over(s.now) })
	if q := s.turn.announcement.question; q != nil && !s.question.waits() && q.over(s.now) {
		s.conclude(endedBy(agent.AnswerExpired))
		s.stopAsking()
	}
}

// expires calls at with the end of each inquiry that cannot be answered yet.
func (s *state) expires(at func(time.Time)) {
	if q := s.turn.announcement.question; q != nil && !s.question.waits() {
		at(q.Until)
	}
	for _, t := range s.queue.waiting {
		if t.question != nil {
			at(t.question.Until)
		}
	}
}

// over reports whether the time for an answer is.
func (q *inquiry) over(now time.Time) bool { return !now.Before(q.Until) }

// step has a question wait for an answer from now on.
func (in questionPut) step(s *stepper) {
	s.question.asked, s.question.until = in.question, time.Time{}
	if ours := s.turn.announcement.question; ours != nil {
		s.question.until = ours.Until
	}
	s.do(showQuestion(in))
	s.question.audible = s.turn.lastSpoken == in.question.Text
	if s.question.audible || s.turn.announcement.question == nil { // else it has not sounded yet, and can be put off
		s.publishQuestion()
	}
}

// publishQuestion publishes the question that waits for an answer, once.
func (s *stepper) publishQuestion() {
	if s.question.waits() && !s.question.published {
		s.question.published = true
		s.do(publish{event.Asked{ID: s.question.asked.ID, Text: s.question.asked.Text}})
	}
}

// step has the turn go on with its answer.
func (in questionAnswered) step(s *stepper) {
	s.leaveHearing()
	s.publishQuestion()
	s.closeQuestion(in.answer.Outcome)
	if in.answer.Outcome != agent.AnswerClosed { // else the turn fails, and says why
		s.conclude(ending{answer: in.answer})
	}
	if s.phase != speaking { // else the question still sounds, and its tts stop is to come
		s.phase = thinking
	}
}

// closeQuestion ends a question, however it ended.
func (s *stepper) closeQuestion(outcome agent.Outcome) {
	if s.question.published {
		s.do(publish{event.Answered{ID: s.question.asked.ID, Answer: string(outcome)}})
	}
	s.question = questionState{}
	s.turn.lastSpoken = "" // the same question once more is another
}

// paused is a question put, its speech played or cut off.
func (s *stepper) paused(askFor time.Duration) {
	s.turn.unsolicitedUntil = time.Time{} // a microphone that opens now, opens for the answer
	if s.mic.mode == xiaozhi.Realtime {
		s.openMicrophone()
	}
	if s.phase != ready && s.phase != hearing { // else somebody answers already
		s.phase = thinking // a touch may have answered
		if s.question.waits() {
			s.again() // in realtime the microphone is open, and nothing more will say so
		}
	}
	if s.question.waits() {
		s.question.audible, s.question.until = true, s.now.Add(askFor)
		s.publishQuestion()
		if q := s.turn.announcement.question; q != nil {
			s.question.until = q.Until
		}
	}
}

// step answers the question that waits, if it is the one that was meant.
func (in decideQuestion) step(s *stepper) {
	if !s.question.waits() || s.question.asked.ID != in.id {
		return
	}
	outcome := agent.AnswerDenied
	if in.allow {
		outcome = agent.AnswerAllowed
	}
	s.do(answerQuestion{agent.Answer{Outcome: outcome}})
}
