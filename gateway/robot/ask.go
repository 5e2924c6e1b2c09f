package robot

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/robot/dialogue"
)

// Ask makes a robot ask people a question, once the robot has finished the turn under way and spoken the
// waiting announcements. Ask then waits for an answer: the next words that the robot hears, a touch of
// its head, or the owner's answer by Reply. The ID, Session and Asked of q may be empty; Until must be set.
//
// The answer is AnswerExpired if nobody has answered by q.Until, even if the robot has not asked yet,
// and AnswerClosed if somebody has silenced the robot. An interruption before the question is heard
// postpones the question. When ctx ends, Ask withdraws the question and returns ctx's error.
//
// While the channel is closed, a robot that can speak while idle speaks the question, and asks again once
// somebody has woken it. For other robots, or if the channel or the MQTT connection closes before an answer,
// Ask returns dialogue.ErrOffline. Ask returns dialogue.ErrBusy if too much waits to be spoken, and another
// error if the robot could not ask, or if q.Text has no words.
func (s *Server) Ask(ctx context.Context, id device.ID, q agent.Question) (agent.Answer, error) {
	text, err := dialogue.Speakable(q.Text)
	if err != nil {
		return agent.Answer{}, err
	}
	r, err := s.awaitSession(ctx, id, q, text)
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
	question := &dialogue.Question{Question: q, Ended: make(chan dialogue.Ending, 1)}
	if err := r.post(ctx, 0, dialogue.Ask{Question: question}); err != nil && ctx.Err() == nil {
		return agent.Answer{}, err
	}
	select {
	case e := <-question.Ended:
		return e.Answer, e.Err
	case <-ctx.Done():
	}
	// post fails only if the session has ended, which has withdrawn the question already.
	_ = r.post(s.ctx, 0, dialogue.Withdraw{Question: question})
	select {
	case e := <-question.Ended: // the answer came before the withdrawal
		return e.Answer, e.Err
	default:
		return agent.Answer{}, ctx.Err()
	}
}

// errExpired is the cancellation cause of a context that has ended because the question has expired.
var errExpired = errors.New("the question's time is over")

// awaitSession returns the open session of a robot. If none exists and the robot can speak while idle,
// awaitSession makes it speak the question and show how to wake it, and waits for the session that
// begins when somebody wakes it.
func (l *links) awaitSession(ctx context.Context, id device.ID, q agent.Question, text string) (*session, error) {
	r, err := l.sessions.of(id)
	k := l.of(id)
	if err == nil || k == nil || !k.canSpeak() {
		return r, err
	}
	if !q.Until.IsZero() {
		within, cancel := context.WithDeadlineCause(ctx, q.Until, errExpired)
		defer cancel()
		ctx = within
	}
	events := l.options.Bus.Read()
	k.announcer.add(dialogue.Announcement{Text: text, Urgent: true, Hint: true})
	for {
		e, err := events.Next(ctx)
		if err != nil {
			k.announcer.withdraw(text)
			return nil, cmp.Or(context.Cause(ctx), err)
		}
		switch e.Event.(type) {
		case event.RobotOnline:
			if e.Robot == id {
				return l.sessions.of(id)
			}
		case event.RobotDisconnected:
			if e.Robot == id {
				return nil, dialogue.ErrOffline
			}
		}
	}
}
