package simrobot

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Ends of a session that are no failure.
var (
	errTapped   = errors.New("the robot was tapped")
	errAllSaid  = errors.New("all was said and answered")
	errRebooted = errors.New("the robot reboots")
)

// Talk opens the channel as a tap does, and holds the talk: it says its
// sentences, each when the one before is answered, and hangs up. Where the
// server hangs up in between, the robot is tapped again. With Options.Stay it
// returns when the server hangs up after the last sentence, or ctx ends.
func (r *Robot) Talk(ctx context.Context) error {
	for {
		before := r.person.next
		err := r.session(ctx)
		if again, err := r.ended(err, before); err != nil || !again {
			return errors.Join(err, r.flash.save())
		}
		if err := r.comeBack(ctx, err); err != nil {
			return err
		}
	}
}

// ended says what the end of a channel means: whether the talk failed, and
// else whether it goes on in another channel.
func (r *Robot) ended(err error, before int) (again bool, failed error) {
	var lost *gone
	switch {
	case errors.As(err, &lost):
		r.o.Observe(HungUp{ByServer: true, Why: lost.cause.Error()})
	case errors.Is(err, errTapped), errors.Is(err, errAllSaid), errors.Is(err, errRebooted):
		r.o.Observe(HungUp{Why: err.Error()})
	default:
		return false, err
	}
	p := &r.person
	if errors.Is(err, errRebooted) && p.doing == speaking {
		p.doing = resting // to say it again
	}
	if p.doing != resting { // cut off in the middle of a turn
		p.turn.Answered = p.turn.Packets > 0
		r.stats.Turns = append(r.stats.Turns, p.turn)
		p.doing = resting
		p.next++
		if !p.turn.Answered {
			return false, fmt.Errorf("%w to %q: %w", ErrUnanswered, p.turn.Text, err)
		}
		r.o.Observe(Turned{Turn: p.turn})
	}
	switch {
	case p.done() || errors.Is(err, errTapped):
		return false, nil
	case p.next == before && !errors.Is(err, errRebooted):
		return false, fmt.Errorf("%w to %q: %w", ErrUnanswered, p.sentences[p.next].Text, err)
	}
	return true, nil
}

// comeBack is what is between two channels: a second, or a boot.
func (r *Robot) comeBack(ctx context.Context, err error) error {
	if errors.Is(err, errRebooted) {
		return r.Boot(ctx)
	}
	return sleep(ctx, time.Second)
}
