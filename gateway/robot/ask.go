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

// Ask makes a robot ask people something, after the turn under way and what waits to be spoken, and
// waits for the answer: the next words, a touch of the head, the owner's Reply, or AnswerExpired once
// q.Until is over, whether it was asked by then or not. AnswerClosed means that somebody has made the
// robot quiet. An interruption before the question is heard postpones it, and the end of ctx
// withdraws it. The ID, Session and Asked of q may be empty. Errors are dialogue.ErrOffline if the
// robot's channel is closed, or closes before an answer; dialogue.ErrBusy; why the robot could not
// ask; and ctx's.
func (s *Server) Ask(ctx context.Context, id device.ID, q agent.Question) (agent.Answer, error) {
	text, err := dialogue.Speakable(q.Text)
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
	about := &dialogue.Question{Question: q, Ended: make(chan dialogue.Ending, 1)}
	if err := r.post(ctx, 0, dialogue.Ask{About: about}); err != nil && ctx.Err() == nil {
		return agent.Answer{}, err
	}
	select {
	case e := <-about.Ended:
		return e.Answer, e.Err
	case <-ctx.Done():
	}
	// A session that has ended has withdrawn it already.
	_ = r.post(s.ctx, 0, dialogue.Withdraw{About: about})
	select {
	case e := <-about.Ended: // the answer came first
		return e.Answer, e.Err
	default:
		return agent.Answer{}, ctx.Err()
	}
}

var errExpired = errors.New("the question's time is over")

// awake returns the session of a robot. If the robot has none and speaks between talks, it speaks the
// question and shows how to wake it, and awake waits for the talk that follows.
func (s *Server) awake(ctx context.Context, id device.ID, q agent.Question, text string) (*session, error) {
	r, err := s.sessions.of(id)
	k := s.links.of(id)
	if err == nil || k == nil || !k.speaks() {
		return r, err
	}
	if !q.Until.IsZero() {
		within, cancel := context.WithDeadlineCause(ctx, q.Until, errExpired)
		defer cancel()
		ctx = within
	}
	events := s.options.Bus.Read()
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
				return s.sessions.of(id)
			}
		case event.RobotDisconnected:
			if e.Robot == id {
				return nil, dialogue.ErrOffline
			}
		}
	}
}
