package simrobot

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Reasons for the end of a session that are not failures.
var (
	errTapped      = errors.New("the robot was tapped")
	errAllAnswered = errors.New("every sentence was answered")
	errRebooted    = errors.New("the robot reboots")
)

// Talk opens a channel by a tap, a wake word or an event, says the sentences (usually each after the
// answer to the previous one), and hangs up. If the server hangs up before the last answer, Talk opens
// a new channel. With Options.Stay it returns when the server hangs up after the last sentence, or when
// ctx ends. With Options.Forever it returns when ctx ends or the conversation fails.
func (r *Robot) Talk(ctx context.Context) error {
	defer r.disconnectMQTT()
	op := r.usualOpening()
	if r.o.Asleep {
		var err error
		if op, err = r.idle(ctx); err != nil {
			return errors.Join(err, r.flash.save())
		}
	}
	for {
		firstSentence := r.person.next
		end := r.runSession(ctx, op)
		if next, ok := errors.AsType[*opening](end); ok {
			op = *next
			continue
		}
		reopen, err := r.channelClosed(ctx, end, firstSentence)
		if err != nil || !reopen && !r.o.Forever {
			return errors.Join(err, r.flash.save())
		}
		if op, err = r.nextOpening(ctx, reopen, errors.Is(end, errRebooted)); err != nil {
			return errors.Join(err, r.flash.save())
		}
	}
}

// nextOpening waits until the next channel is to be opened, and returns the command that opens it.
// If reopen is true, the conversation continues after a second, or after the reboot if rebooted is
// true. Otherwise the robot is idle until a command arrives.
func (r *Robot) nextOpening(ctx context.Context, reopen, rebooted bool) (opening, error) {
	var err error
	switch {
	case rebooted:
		r.disconnectMQTT()
		err = r.Boot(ctx)
	case reopen:
		err = sleep(ctx, time.Second)
	}
	if reopen || err != nil {
		return r.usualOpening(), err
	}
	return r.idle(ctx)
}

// channelClosed handles the end of a channel, for the reason end. firstSentence is the index of
// the first sentence that was due in the channel. reopen reports whether the conversation continues in
// another channel. err is not nil if the conversation has failed.
func (r *Robot) channelClosed(ctx context.Context, end error, firstSentence int) (reopen bool, err error) {
	closed, isClosed := errors.AsType[*closedError](end)
	_, notOpened := errors.AsType[*openError](end)
	switch {
	case notOpened && r.o.Forever && ctx.Err() == nil:
		r.o.Observe(HungUp{Why: end.Error()})
		return false, nil
	case isClosed:
		r.o.Observe(HungUp{ByServer: true, Why: closed.cause.Error()})
	case errors.Is(end, errTapped), errors.Is(end, errAllAnswered), errors.Is(end, errRebooted):
		r.o.Observe(HungUp{Why: end.Error()})
	default:
		return false, end
	}
	p := &r.person
	if errors.Is(end, errRebooted) && p.doing == speaking {
		p.doing = resting // the person repeats the sentence
	}
	if p.doing != resting { // the channel closed in the middle of a turn
		p.turn.Answered = p.turn.Packets > 0
		r.stats.Turns = append(r.stats.Turns, p.turn)
		p.doing = resting
		p.next++
		if !p.turn.Answered && !p.turn.Interrupted {
			return false, fmt.Errorf("%w to %q: %w", ErrUnanswered, p.turn.Text, end)
		}
		r.o.Observe(TurnEnded{Turn: p.turn})
	}
	switch {
	case p.isDone() || errors.Is(end, errTapped):
		return false, nil
	case p.next == firstSentence && !errors.Is(end, errRebooted):
		return false, fmt.Errorf("%w to %q: %w", ErrUnanswered, p.sentences[p.next].Text, end)
	}
	return true, nil
}
