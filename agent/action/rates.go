package action

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"perch/event"
	"perch/limit"
)

// The rate limits of the agent system.
const (
	gestureEvery = 600 * time.Millisecond // the first of a burst passes, the others are dropped
	emoteWithin  = 150 * time.Millisecond // those of one trigger are merged into the one of the largest weight
	lookAfter    = 100 * time.Millisecond // of quiet; the latest counts

	burstWithin = 100 * time.Millisecond
	coolFor     = time.Second // after a burst

	mostPlaces = 256 // with stored rates
)

// burst returns how many actions of a type may arrive within burstWithin.
func burst(kind Type) int {
	switch kind {
	case PerformSkill:
		return 10
	case Emote:
		return 20
	case Speak:
		return 5
	}
	return 100
}

// ErrRate is wrapped by the error for a burst, which names the type.
var ErrRate = errors.New("too many actions")

// Rates limits the actions of viewers, for each place separately. A place is where an
// event is published. Rates is not safe for concurrent use and reads no clock.
type Rates[Place comparable] struct {
	of map[Place]*rates
}

// rates is the state of one place.
type rates struct {
	used    time.Time
	bursts  map[Type]*window
	gesture time.Time // when the latest one passed
	emotes  map[string]*waiting
	look    *waiting
}

// window counts the actions of a type within burstWithin.
type window struct {
	began time.Time
	count int
	until time.Time // end of a cooldown, until which nothing passes
}

type waiting struct {
	event event.Event
	due   time.Time
}

// Ready is a delayed event that is due.
type Ready[Place comparable] struct {
	At    Place
	Event event.Event
}

// NewRates returns empty rates.
func NewRates[Place comparable]() *Rates[Place] { return &Rates[Place]{of: map[Place]*rates{}} }

// Admit handles an event of a type. pass reports whether to publish it now; otherwise it
// is dropped, or delayed and possibly merged, until Ready returns it. The error wraps ErrRate.
func (r *Rates[Place]) Admit(now time.Time, at Place, kind Type, e event.Event) (pass bool, err error) {
	one := r.place(now, at)
	if !one.within(now, kind) {
		return false, fmt.Errorf("%w: more than %d of %s within %d ms; none is taken for %d ms", ErrRate,
			burst(kind), kind, burstWithin.Milliseconds(), coolFor.Milliseconds())
	}
	switch e := e.(type) {
	case event.Gesture:
		if now.Sub(one.gesture) < gestureEvery {
			return false, nil
		}
		one.gesture = now
		return true, nil
	case event.Emote:
		if delayed := one.emotes[e.Trigger]; delayed == nil {
			one.emotes[e.Trigger] = &waiting{e, now.Add(emoteWithin)}
		} else if before, is := delayed.event.(event.Emote); is && e.Weight > before.Weight {
			delayed.event = e
		}
		return false, nil
	case event.LookAt:
		one.look = &waiting{e, now.Add(lookAfter)}
		return false, nil
	}
	return true, nil
}

// place returns the rates of a place. Beyond the bound it drops the least recently used
// place, preferring those without delayed events.
func (r *Rates[Place]) place(now time.Time, at Place) *rates {
	one := r.of[at]
	if one == nil {
		if len(r.of) >= mostPlaces {
			delete(r.of, limit.First(r.of, func(a, b *rates) int { return cmp.Or(a.waiting()-b.waiting(), a.used.Compare(b.used)) }))
		}
		one = &rates{bursts: map[Type]*window{}, emotes: map[string]*waiting{}}
		r.of[at] = one
	}
	one.used = now
	return one
}

// waiting returns 1 if an event is delayed, and otherwise 0.
func (o *rates) waiting() int {
	if len(o.emotes) == 0 && o.look == nil {
		return 0
	}
	return 1
}

// within counts an action, and reports whether it is within its type's burst limit.
func (o *rates) within(now time.Time, kind Type) bool {
	w := o.bursts[kind]
	if w == nil {
		w = &window{}
		o.bursts[kind] = w
	}
	if now.Before(w.until) {
		return false
	}
	if now.Sub(w.began) >= burstWithin {
		w.began, w.count = now, 0
	}
	if w.count++; w.count > burst(kind) {
		*w = window{until: now.Add(coolFor)}
		return false
	}
	return true
}

// Ready returns the delayed events that are due.
func (r *Rates[Place]) Ready(now time.Time) (all []Ready[Place]) {
	for at, one := range r.of {
		for trigger, delayed := range one.emotes {
			if !now.Before(delayed.due) {
				all = append(all, Ready[Place]{at, delayed.event})
				delete(one.emotes, trigger)
			}
		}
		if delayed := one.look; delayed != nil && !now.Before(delayed.due) {
			all = append(all, Ready[Place]{at, delayed.event})
			one.look = nil
		}
	}
	return all
}

// NextReady returns when the next delayed event is due; the zero time means never.
func (r *Rates[Place]) NextReady() (next time.Time) {
	sooner := func(delayed *waiting) {
		if delayed != nil && (next.IsZero() || delayed.due.Before(next)) {
			next = delayed.due
		}
	}
	for _, one := range r.of {
		for _, delayed := range one.emotes {
			sooner(delayed)
		}
		sooner(one.look)
	}
	return next
}
