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

// pace limits the events of viewers, and delays some.
type pace struct {
	mu     sync.Mutex
	rates  *action.Rates[place]
	all    bound         // of published events, so that a viewer cannot push speech out of the bus
	stored bound         // of events that are written to disk, by the memory, the diary or both
	wake   chan struct{} // receives when an event waits
}

// bound is a limit for all places together. The rates are per place, and viewers choose their
// places.
type bound struct {
	most   int
	within time.Duration
	since  time.Time
	n      int
}

// full returns an error that wraps action.ErrRate if the bound is reached.
func (b *bound) full(now time.Time, of string) error {
	if now.Sub(b.since) >= b.within {
		b.since, b.n = now, 0
	}
	if b.n < b.most {
		return nil
	}
	return fmt.Errorf("%w: more than %d within %s%s, from all viewers together; wait until it has passed", action.ErrRate, b.most, b.within, of)
}

// isStored reports whether actions of a type are written to disk.
func isStored(kind action.Type) bool {
	switch kind {
	case action.Speak, action.Remember, action.Sign, action.PerformSkill, action.SkillDone, action.Validate, action.LoadEnd:
		return true
	}
	return false
}

// admit reports whether to publish an event now, and counts it unless it is dropped.
func (p *pace) admit(now time.Time, at place, kind action.Type, e event.Event) (pass bool, err error) {
	if err := p.all.full(now, ""); err != nil {
		return false, err
	}
	if pass, err = p.rates.Admit(now, at, kind, e); err != nil {
		return false, err
	}
	if _, gesture := e.(event.Gesture); gesture && !pass {
		return false, nil // dropped
	}
	if pass && isStored(kind) {
		if err := p.stored.full(now, " of those that are kept"); err != nil {
			return false, err
		}
		p.stored.n++
	}
	p.all.n++
	return pass, nil
}

// place is a robot, or a session without one.
type place struct {
	robot   device.ID
	session string
}

func newPace() pace {
	return pace{rates: action.NewRates[place](), all: bound{most: 300, within: time.Second}, stored: bound{most: 60, within: time.Minute},
		wake: make(chan struct{}, 1)}
}

// admit reports whether to publish a viewer's event now; otherwise it is published later or
// dropped.
func (a *API) admit(at place, kind action.Type, e event.Event) (now bool, err error) {
	a.pace.mu.Lock()
	now, err = a.pace.admit(time.Now(), at, kind, e)
	a.pace.mu.Unlock()
	if !now {
		select {
		case a.pace.wake <- struct{}{}:
		default: // Run has yet to receive
		}
	}
	return now, err
}

// Run publishes delayed events until ctx ends.
func (a *API) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-a.pace.wake:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		a.pace.mu.Lock()
		ready := a.pace.rates.Ready(now)
		next := a.pace.rates.NextReady()
		a.pace.mu.Unlock()
		for _, r := range ready {
			a.o.Bus.Publish(r.At.robot, r.At.session, r.Event)
		}
		if !next.IsZero() {
			timer.Reset(cmp.Or(max(next.Sub(now), 0), time.Millisecond))
		}
	}
}
