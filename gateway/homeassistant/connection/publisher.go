package connection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// maxInFlight bounds the published messages that the broker has not confirmed.
const maxInFlight = 128

// publisher publishes the messages of the outbox on one connection, in order. Only the goroutine that calls run blocks
// on a slow broker.
type publisher struct {
	out      *Outbox
	link     Link
	farewell Message // published last, after a call of leave

	ctx     context.Context // canceled by cancel; then nothing more is published
	cancel  context.CancelFunc
	leaving context.Context // canceled by leave; then the publisher ends after the queue and the farewell
	leave   context.CancelFunc

	done     chan struct{} // closed once run has returned
	err      error         // the error that ended run; nil if leave or cancel ended it. Read it only after done is closed
	inFlight []sent        // messages whose confirmation was not seen yet, in the order of publication
}

// sent is a published message and its receipt.
type sent struct {
	Parcel
	receipt Receipt
}

func newPublisher(out *Outbox, l Link, farewell Message) *publisher {
	p := &publisher{out: out, link: l, farewell: farewell, done: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background()) // Connection.serve cancels it when the connection ends
	p.leaving, p.leave = context.WithCancel(p.ctx)
	return p
}

// unconfirmed waits until the publisher has ended, and returns the messages that the broker has not confirmed.
func (p *publisher) unconfirmed() (parcels []Parcel) {
	<-p.done
	for _, s := range p.inFlight {
		if !isDone(s.receipt) || s.receipt.Error() != nil {
			parcels = append(parcels, s.Parcel)
		}
	}
	return parcels
}

// run publishes messages until leave or cancel is called, or an error occurs.
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
				p.waitInFlight(0)
			}
			return
		}
	}
}

// send publishes a message. If more than maxInFlight messages are then in flight, it waits for the oldest ones.
func (p *publisher) send(parcel Parcel) {
	p.inFlight = slices.DeleteFunc(p.inFlight, func(s sent) bool { return isDone(s.receipt) && s.receipt.Error() == nil })
	s := sent{parcel, p.link.Publish(parcel.Message)}
	if s.MakePayload != nil {
		s.Payload = nil // the outbox can make it again
	}
	p.inFlight = append(p.inFlight, s)
	if isDone(s.receipt) {
		p.setError(s.receipt.Error())
	}
	p.waitInFlight(maxInFlight)
}

// waitInFlight waits until at most n messages are in flight. If this takes more than writeTimeout, it records an error.
func (p *publisher) waitInFlight(n int) {
	if len(p.inFlight) <= n {
		return
	}
	timer := time.NewTimer(writeTimeout)
	defer timer.Stop()
	for _, s := range p.inFlight[:len(p.inFlight)-n] {
		select {
		case <-s.receipt.Done():
			p.setError(s.receipt.Error())
		case <-timer.C:
			p.setError(errors.New("the broker no longer confirms messages; it may be overloaded or stopped"))
			return
		case <-p.ctx.Done():
			return
		}
	}
}

// setError records the first error that is not nil.
func (p *publisher) setError(err error) {
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("publish: %w", err)
	}
}

// isDone reports whether the outcome of a publication is known.
func isDone(r Receipt) bool {
	select {
	case <-r.Done():
		return true
	default:
		return false
	}
}
