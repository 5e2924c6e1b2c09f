package acp

import (
	"context"
	"crypto/rand"

	"perch/agent"
	"perch/agent/thinker"
	"perch/limit"
)

// DescribeImage implements agent.Seer. It uses a new session without the robot's tools, and
// refuses all requests for permission, because the question needs nothing but the picture.
// It returns agent.ErrStranger if nobody at the robot may decide on permissions, and an error
// that wraps agent.ErrBlind if the agent does not accept pictures.
func (b *Brain) DescribeImage(ctx context.Context, l agent.Look) (string, error) {
	if b.o.MayAnswer == nil || !b.o.MayAnswer(l.Robot) {
		return "", agent.ErrStranger
	}
	return thinker.DescribeImage(ctx, l, limit.Message, b.continueVision)
}

// continueVision has the agent answer a prompt with a picture.
func (b *Brain) continueVision(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	if c, err := b.runningConn(ctx); err != nil {
		return "", err
	} else if !c.images {
		return "", agent.ErrBlind
	}
	id := "picture " + rand.Text()
	conv, err := b.beginTurn(ctx, id)
	if err != nil {
		return "", err
	}
	defer b.Forget(id)
	defer b.endTurn(conv)
	s, err := b.openSession(ctx, conv, nil)
	if err != nil {
		return "", err
	}
	in, err := s.conn.prompt(s, []string{p.System, p.Messages[0].Text}, p.Messages[0].Pictures...)
	if err != nil {
		return "", err
	}
	r := &turnRun{brain: b, session: s, inbox: in}
	for {
		it, err := r.next(ctx)
		switch it := it.(type) {
		case text:
			err = out(thinker.Piece{Text: string(it)})
		case permission:
			s.conn.sendDecision(it, refused)
		case ended:
			switch {
			case it.err != nil:
				return "", b.promptError(s, it.err, true)
			case it.reason == "refusal":
				return thinker.StopRefused, nil
			}
			return thinker.StopEnd, out(thinker.Piece{Text: it.content})
		}
		if err != nil {
			s.conn.cancel(s, in, b.o.Grace, nil)
			return "", err
		}
	}
}
