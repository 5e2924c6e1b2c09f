package robot

import (
	"context"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
)

// Ask has a robot put a question after the turn under way, and waits for what
// somebody answers, there or by Reply. The end of ctx withdraws it, and is then
// the error. It returns ErrOffline where the channel is closed, or closes before
// there is an answer.
func (s *Server) Ask(ctx context.Context, id device.ID, q agent.Question) (agent.Answer, error) {
	r, err := s.session(id)
	if err != nil {
		return agent.Answer{}, err
	}
	answered := make(chan agent.Answer, 1)
	put := &agent.Ask{ID: q.ID, Text: q.Text, Within: time.Until(q.Until), Answer: func(a agent.Answer) { answered <- a }}
	if err := r.post(ctx, tell{telling: telling{text: q.Text, question: put}}); err != nil {
		return agent.Answer{}, err
	}
	select {
	case a := <-answered:
		return a, nil
	case <-r.done:
		return agent.Answer{}, ErrOffline
	case <-ctx.Done():
	}
	// A channel that closes meanwhile has nothing to withdraw.
	_ = r.post(s.ctx, withdraw{q.ID})
	return agent.Answer{}, ctx.Err()
}

// withdraw takes back a question of the house: one that waits is not put, one
// that is being put is broken off.
func (s *stepper) withdraw(id string) {
	s.toSay = slices.DeleteFunc(slices.Clone(s.toSay), func(t telling) bool { return t.question != nil && t.question.ID == id })
	if q := s.telling.question; s.turn && q != nil && q.ID == id {
		s.interrupt(false)
	}
}
