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

// pace has what the rates of viewers let through published, some of it a little later.
type pace struct {
	mu    sync.Mutex
	rates *action.Rates[place]
	all   bound         // of what is published: else one viewer could push speech out of the bus
	kept  bound         // of what is written to the disk, by the memory, the diary or both
	poke  chan struct{} // something waits
}

// bound is one over all places. The rates are of each place, and a viewer names its
// places itself.
type bound struct {
	most   int
	within time.Duration
	since  time.Time
	n      int
}

// full returns an error that wraps action.ErrRate where no more may be counted now.
func (b *bound) full(now time.Time, of string) error {
	if now.Sub(b.since) >= b.within {
		b.since, b.n = now, 0
	}
	if b.n < b.most {
		return nil
	}
	return fmt.Errorf("%w: more than %d within %s%s, from all viewers together; wait until it has passed", action.ErrRate, b.most, b.within, of)
}

// lasts reports whether an action of a type is written to the disk.
func lasts(kind action.Type) bool {
	switch kind {
	case action.Speak, action.Remember, action.Sign, action.PerformSkill, action.SkillDone, action.Validate, action.LoadEnd:
		return true
	}
	return false
}

// admit asks for an event to be published now, and counts it where it is now or later.
func (p *pace) admit(now time.Time, at place, kind action.Type, e event.Event) (pass bool, err error) {
	if err := p.all.full(now, ""); err != nil {
		return false, err
	}
	if pass, err = p.rates.Admit(now, at, kind, e); err != nil {
		return false, err
	}
	if _, gesture := e.(event.Gesture); gesture && !pass {
		return false, nil // it is dropped
	}
	if pass && lasts(kind) {
		if err := p.kept.full(now, " of those that are kept"); err != nil {
			return false, err
		}
		p.kept.n++
	}
	p.all.n++
	return pass, nil
}

// place is where something is published.
type place struct {
	robot   device.ID
	session string
}

func newPace() pace {
	return pace{rates: action.NewRates[place](), all: bound{most: 300, within: time.Second}, kept: bound{most: 60, within: time.Minute},
		poke: make(chan struct{}, 1)}
}

// admit asks for a viewer's event to be published now. It returns false where it is
// published later, if at all.
func (a *API) admit(at place, kind action.Type, e event.Event) (now bool, err error) {
	a.pace.mu.Lock()
	now, err = a.pace.admit(time.Now(), at, kind, e)
	a.pace.mu.Unlock()
	if !now {
		select {
		case a.pace.poke <- struct{}{}:
		default: // it has yet to look
		}
	}
	return now, err
}

// Run publishes what waits for its time until ctx ends.
func (a *API) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-a.pace.poke:
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
