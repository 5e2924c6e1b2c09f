package simrobot

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Ends of a session that are not failures.
var (
	errTapped      = errors.New("the robot was tapped")
	errAllAnswered = errors.New("all was said and answered")
	errRebooted    = errors.New("the robot reboots")
)

// Talk opens the channel by a tap or a wake word, says the sentences, each when the
// previous one is answered, and hangs up. If the server hangs up before the last
// answer, it opens the channel again. With Options.Stay it returns when the server
// hangs up after the last sentence, or ctx ends; with Options.Forever only when ctx
// ends.
func (r *Robot) Talk(ctx context.Context) error {
	defer r.offline()
	how := r.usualOpening()
	if r.o.Asleep {
		var err error
		if how, err = r.idle(ctx); err != nil {
			return errors.Join(err, r.flash.save())
		}
	}
	for {
		before := r.person.next
		err := r.session(ctx, how)
		if next, ok := errors.AsType[*opening](err); ok {
			how = *next
			continue
		}
		again, failed := r.channelClosed(ctx, err, before)
		if failed != nil || !again && !r.o.Forever {
			return errors.Join(failed, r.flash.save())
		}
		if how, err = r.next(ctx, again, errors.Is(err, errRebooted)); err != nil {
			return errors.Join(err, r.flash.save())
		}
	}
}

// next returns the next opening of a channel, after a second, a boot or an idle time.
func (r *Robot) next(ctx context.Context, again, rebooted bool) (opening, error) {
	var err error
	switch {
	case rebooted:
		r.offline()
		err = r.Boot(ctx)
	case again:
		err = sleep(ctx, time.Second)
	}
	if again || err != nil {
		return r.usualOpening(), err
	}
	return r.idle(ctx)
}

// channelClosed decides whether the end of a channel failed the talk, and if not, whether
// the talk goes on in another channel.
func (r *Robot) channelClosed(ctx context.Context, err error, before int) (again bool, failed error) {
	lost, isLost := errors.AsType[*gone](err)
	_, never := errors.AsType[*unopened](err)
	switch {
	case never && r.o.Forever && ctx.Err() == nil:
		r.o.Observe(HungUp{Why: err.Error()})
		return false, nil
	case isLost:
		r.o.Observe(HungUp{ByServer: true, Why: lost.cause.Error()})
	case errors.Is(err, errTapped), errors.Is(err, errAllAnswered), errors.Is(err, errRebooted):
		r.o.Observe(HungUp{Why: err.Error()})
	default:
		return false, err
	}
	p := &r.person
	if errors.Is(err, errRebooted) && p.doing == speaking {
		p.doing = resting // the sentence is repeated
	}
	if p.doing != resting { // cut off in the middle of a turn
		p.turn.Answered = p.turn.Packets > 0
		r.stats.Turns = append(r.stats.Turns, p.turn)
		p.doing = resting
		p.next++
		if !p.turn.Answered && !p.turn.Interrupted {
			return false, fmt.Errorf("%w to %q: %w", ErrUnanswered, p.turn.Text, err)
		}
		r.o.Observe(TurnEnded{Turn: p.turn})
	}
	switch {
	case p.done() || errors.Is(err, errTapped):
		return false, nil
	case p.next == before && !errors.Is(err, errRebooted):
		return false, fmt.Errorf("%w to %q: %w", ErrUnanswered, p.sentences[p.next].Text, err)
	}
	return true, nil
}
