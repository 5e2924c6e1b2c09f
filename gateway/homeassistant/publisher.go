package homeassistant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// mostInFlight is how many messages the broker may have yet to confirm.
const mostInFlight = 128

// publisher publishes the outbox on one connection, in order. It is the only one
// that waits for a slow broker.
type publisher struct {
	out  *outbox
	link link
	last message // that it publishes when leave is called

	gone    context.Context // ended by cut: nothing more can be published
	cut     context.CancelFunc
	leaving context.Context // ended by leave: what is queued, the last word, and out
	leave   context.CancelFunc

	done   chan struct{} // closed at its end
	err    error         // why; nil where it left or was cut
	flying []sent
}

// sent is a message that the broker has yet to confirm.
type sent struct {
	parcel
	receipt receipt
}

func newPublisher(out *outbox, l link, last message) *publisher {
	k := &publisher{out: out, link: l, last: last, done: make(chan struct{})}
	k.gone, k.cut = context.WithCancel(context.Background()) // ended at the end of the connection
	k.leaving, k.leave = context.WithCancel(k.gone)
	return k
}

// wait returns what was not confirmed, once it has ended.
func (k *publisher) wait() (unconfirmed []parcel) {
	<-k.done
	for _, s := range k.flying {
		if !isDone(s.receipt) || s.receipt.Error() != nil {
			unconfirmed = append(unconfirmed, s.parcel)
		}
	}
	return unconfirmed
}

func (k *publisher) run() {
	defer close(k.done)
	for k.gone.Err() == nil && k.err == nil {
		if p, some := k.out.take(time.Now()); some {
			k.send(p)
			continue
		}
		select {
		case <-k.out.wake:
		case <-k.leaving.Done():
			if k.gone.Err() == nil {
				k.send(parcel{message: k.last})
				k.settle(0)
			}
			return
		}
	}
}

// send publishes one message.
func (k *publisher) send(p parcel) {
	k.flying = slices.DeleteFunc(k.flying, func(s sent) bool { return isDone(s.receipt) && s.receipt.Error() == nil })
	s := sent{p, k.link.publish(p.message)}
	if s.again != nil {
		s.payload = nil // it is not given back
	}
	k.flying = append(k.flying, s)
	if isDone(s.receipt) {
		k.failed(s.receipt.Error())
	}
	k.settle(mostInFlight)
}

// settle waits until no more than most messages fly.
func (k *publisher) settle(most int) {
	if len(k.flying) <= most {
		return
	}
	timer := time.NewTimer(writeWithin)
	defer timer.Stop()
	for _, s := range k.flying[:len(k.flying)-most] {
		select {
		case <-s.receipt.Done():
			k.failed(s.receipt.Error())
		case <-timer.C:
			k.failed(errors.New("the broker confirms nothing any more; it may be overloaded or stopped"))
			return
		case <-k.gone.Done():
			return
		}
	}
}

func (k *publisher) failed(err error) {
	if err != nil && k.err == nil {
		k.err = fmt.Errorf("publish: %w", err)
	}
}

func isDone(r receipt) bool {
	select {
	case <-r.Done():
		return true
	default:
		return false
	}
}
