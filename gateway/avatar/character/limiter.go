package character

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"perch/agent/action"
	"perch/device"
	"perch/event"
)

// limiter limits the events that viewers report or request, and delays some of them.
type limiter struct {
	mu     sync.Mutex
	rates  *action.Rates[place]
	all    rateLimit     // for all admitted events: too many would displace events about speech from the bus
	stored rateLimit     // for events that are written to disk, as a memory or in the diary
	wake   chan struct{} // receives an element if an event was not published at once
}

// rateLimit limits the number of events in each period, at all places together. action.Rates does not
// replace it, because action.Rates limits each place separately, and a viewer may use any number of
// places.
type rateLimit struct {
	max    int
	period time.Duration
	since  time.Time // start of the current period
	n      int       // number of events in the current period
}

// check returns an error that wraps action.ErrRate if the limit is reached. It does not count an event.
// which is a part of the error's text that says which events are limited; it may be empty.
func (b *rateLimit) check(now time.Time, which string) error {
	if now.Sub(b.since) >= b.period {
		b.since, b.n = now, 0
	}
	if b.n < b.max {
		return nil
	}
	return fmt.Errorf("%w: more than %d within %s%s, from all viewers together; try again later", action.ErrRate, b.max, b.period, which)
}

// isStored reports whether actions of a type are written to disk.
func isStored(kind action.Type) bool {
	switch kind {
	case action.Speak, action.Remember, action.Sign, action.PerformSkill, action.SkillDone, action.Validate, action.LoadEnd:
		return true
	}
	return false
}

// admit counts an event, and reports whether the caller must publish it now. Otherwise the event is
// delayed, or dropped if it is a gesture. The error wraps action.ErrRate; the event is then dropped.
func (p *limiter) admit(now time.Time, at place, kind action.Type, e event.Event) (publish bool, err error) {
	if err := p.all.check(now, ""); err != nil {
		return false, err
	}
	if publish, err = p.rates.Admit(now, at, kind, e); err != nil {
		return false, err
	}
	if _, gesture := e.(event.Gesture); gesture && !publish {
		return false, nil // the gesture is dropped, so it does not count
	}
	if publish && isStored(kind) {
		if err := p.stored.check(now, " of the types that are stored"); err != nil {
			return false, err
		}
		p.stored.n++
	}
	p.all.n++
	return publish, nil
}

// place is the robot, or the session without a robot, that an action belongs to. If both fields are
// empty, the action belongs only to the default character.
type place struct {
	robot   device.ID
	session string
}

func newLimiter() limiter {
	return limiter{rates: action.NewRates[place](), all: rateLimit{max: 300, period: time.Second}, stored: rateLimit{max: 60, period: time.Minute},
		wake: make(chan struct{}, 1)}
}

// admit calls limiter.admit for a viewer's event. If publish is false, Run publishes the event later, or
// the event is dropped.
func (a *API) admit(at place, kind action.Type, e event.Event) (publish bool, err error) {
	a.limiter.mu.Lock()
	publish, err = a.limiter.admit(time.Now(), at, kind, e)
	a.limiter.mu.Unlock()
	if !publish {
		select {
		case a.limiter.wake <- struct{}{}:
		default: // Run will receive an earlier element
		}
	}
	return publish, err
}

// Run publishes delayed events until ctx ends.
func (a *API) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-a.limiter.wake:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		a.limiter.mu.Lock()
		ready := a.limiter.rates.Ready(now)
		next := a.limiter.rates.NextReady()
		a.limiter.mu.Unlock()
		for _, r := range ready {
			a.o.Bus.Publish(r.At.robot, r.At.session, r.Event)
		}
		if !next.IsZero() {
			timer.Reset(cmp.Or(max(next.Sub(now), 0), time.Millisecond))
		}
	}
}
