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
	kept  lasting
	poke  chan struct{} // something waits
}

// lasting bounds the reports that are written to the disk: by the memory, the diary or
// both. The rates are of each place, and a viewer names its places itself; without a
// bound over all of them one viewer could push out what others had kept.
type lasting struct {
	since time.Time
	n     int
}

// Bounds of those reports, of all viewers together.
const (
	mostLasting = 60
	lastingFor  = time.Minute
)

// take counts one of a type, and returns an error that wraps action.ErrRate where there
// were too many.
func (l *lasting) take(now time.Time, kind action.Type) error {
	switch kind {
	case action.Speak, action.Remember, action.Sign, action.PerformSkill, action.SkillDone, action.Validate, action.LoadEnd:
	default:
		return nil
	}
	if now.Sub(l.since) >= lastingFor {
		l.since, l.n = now, 0
	}
	if l.n == mostLasting {
		return fmt.Errorf("%w: more than %d within %s of those that are kept, from all viewers together; wait until it has passed",
			action.ErrRate, mostLasting, lastingFor)
	}
	l.n++
	return nil
}

// place is where something is published.
type place struct {
	robot   device.ID
	session string
}

func newPace() pace { return pace{rates: action.NewRates[place](), poke: make(chan struct{}, 1)} }

// admit asks for a viewer's event to be published now. It returns false where it is
// published later, if at all.
func (d *Door) admit(at place, kind action.Type, e event.Event) (now bool, err error) {
	d.pace.mu.Lock()
	now, err = d.pace.rates.Take(time.Now(), at, kind, e)
	if now {
		err = d.pace.kept.take(time.Now(), kind)
	}
	d.pace.mu.Unlock()
	if !now {
		select {
		case d.pace.poke <- struct{}{}:
		default: // it has yet to look
		}
	}
	return now, err
}

// Run publishes what waits for its time until ctx ends.
func (d *Door) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-d.pace.poke:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		d.pace.mu.Lock()
		ready := d.pace.rates.Ready(now)
		next := d.pace.rates.Due()
		d.pace.mu.Unlock()
		for _, r := range ready {
			d.o.Bus.Publish(r.At.robot, r.At.session, r.Event)
		}
		if !next.IsZero() {
			timer.Reset(cmp.Or(max(next.Sub(now), 0), time.Millisecond))
		}
	}
}
