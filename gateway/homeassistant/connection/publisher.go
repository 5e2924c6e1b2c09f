package connection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// mostInFlight bounds the messages that the broker has yet to confirm.
const mostInFlight = 128

// publisher publishes the outbox on one connection, in order. Only its goroutine waits for a
// slow broker.
type publisher struct {
	out      *Outbox
	link     Link
	farewell Message // published last, after leave is called

	ctx     context.Context // canceled by cancel: nothing more is published
	cancel  context.CancelFunc
	leaving context.Context // canceled by leave: the queue and the farewell are published, then it ends
	leave   context.CancelFunc

	done     chan struct{} // closed at its end
	err      error         // why it ended; nil after leave or cancel
	inFlight []sent
}

// sent is a message that the broker has yet to confirm.
type sent struct {
	Parcel
	receipt Receipt
}

func newPublisher(out *Outbox, l Link, farewell Message) *publisher {
	p := &publisher{out: out, link: l, farewell: farewell, done: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background()) // canceled at the end of the connection
	p.leaving, p.leave = context.WithCancel(p.ctx)
	return p
}

// unconfirmed waits until the publisher has ended and returns what the broker has not confirmed.
func (p *publisher) unconfirmed() (parcels []Parcel) {
	<-p.done
	for _, s := range p.inFlight {
		if !isDone(s.receipt) || s.receipt.Error() != nil {
			parcels = append(parcels, s.Parcel)
		}
	}
	return parcels
}

func (p *publisher) run() {
	defer close(p.done)
	for p.ctx.Err() == nil && p.err == nil {
		if parcel, found := p.out.Next(time.Now()); found {
			p.send(parcel)
			continue
		}
		select {
		case <-p.out.wake:
		case <-p.leaving.Done():
			if p.ctx.Err() == nil {
				p.send(Parcel{Message: p.farewell})
				p.await(0)
			}
			return
		}
	}
}

// send publishes one message and waits while too many are in flight.
func (p *publisher) send(parcel Parcel) {
	p.inFlight = slices.DeleteFunc(p.inFlight, func(s sent) bool { return isDone(s.receipt) && s.receipt.Error() == nil })
	s := sent{parcel, p.link.Publish(parcel.Message)}
	if s.Again != nil {
		s.Payload = nil // the outbox does not need it back
	}
	p.inFlight = append(p.inFlight, s)
	if isDone(s.receipt) {
		p.fail(s.receipt.Error())
	}
	p.await(mostInFlight)
}

// await waits until at most n messages are in flight.
func (p *publisher) await(n int) {
	if len(p.inFlight) <= n {
		return
	}
	timer := time.NewTimer(writeTimeout)
	defer timer.Stop()
	for _, s := range p.inFlight[:len(p.inFlight)-n] {
		select {
		case <-s.receipt.Done():
			p.fail(s.receipt.Error())
		case <-timer.C:
			p.fail(errors.New("the broker confirms nothing any more; it may be overloaded or stopped"))
			return
		case <-p.ctx.Done():
			return
		}
	}
}

func (p *publisher) fail(err error) {
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("publish: %w", err)
	}
}

func isDone(r Receipt) bool {
	select {
	case <-r.Done():
		return true
	default:
		return false
	}
}
