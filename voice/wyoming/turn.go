package wyoming

import (
	"context"
	"errors"

	"perch/voice"
)

// turnNeed returns the need of a call of JudgeEnd.
func turnNeed() need {
	return need{"judge turns", func(s *server, info Info) error {
		if len(info.Turn) == 0 {
			return s.newFault("it does not tell when a person has finished; perch-speech with the model smart-turn does", errNotServed)
		}
		return nil
	}}
}

// JudgeEnd implements voice.EndJudge. Of all servers, only perch-speech can judge. JudgeEnd returns errors.ErrUnsupported
// without a configured server: others must not hear what they are not asked to recognize.
func (e *Engine) JudgeEnd(ctx context.Context, u *voice.Utterance) (probability float64, err error) {
	if e.fixed == nil {
		return 0, errors.ErrUnsupported
	}
	s, _, timeout, err := e.pick(ctx, turnNeed())
	if err != nil {
		return 0, err
	}
	var turn Turn
	err = s.call(ctx, timeout, e.o.AnswerWithin, func(ctx context.Context, c *call) error {
		return sendUtterance(ctx, c, TypeTurn, nil, u)
	}, func(c *call) error {
		for {
			switch event, err := c.read(); {
			case err != nil:
				return err
			case event.Type != TypeTurn:
				continue
			case event.Decode(&turn) != nil, turn.Complete < 0, turn.Complete > 1:
				return reason("its probability that a person has finished is not a number from 0 to 1")
			}
			return nil
		}
	})
	return turn.Complete, err
}
