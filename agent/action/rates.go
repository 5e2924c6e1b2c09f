package action

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"perch/event"
	"perch/limit"
)

// The rates of the agent system.
const (
	gestureEvery = 600 * time.Millisecond // the first of a burst passes, the others are dropped
	emoteWithin  = 150 * time.Millisecond // of one trigger become one, of the largest weight
	lookAfter    = 100 * time.Millisecond // of quiet; the latest counts

	burstWithin = 100 * time.Millisecond
	coolFor     = time.Second // after a burst

	mostPlaces = 256 // that rates are kept of
)

// burst is how many actions of a type may come within burstWithin.
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

// ErrRate is wrapped by the error for a burst. Its sentence says of what.
var ErrRate = errors.New("too many actions")

// Rates holds the actions of viewers to the rates, at each place by itself. A place is
// where an event is published. One goroutine at a time uses it; it reads no clock.
type Rates[Place comparable] struct {
	of map[Place]*rates
}

// rates are those of one place.
type rates struct {
	used    time.Time
	bursts  map[Type]*window
	gesture time.Time // when the latest passed
	emotes  map[string]*waiting
	look    *waiting
}

// window counts a type within a burst's time.
type window struct {
	began time.Time
	count int
	until time.Time // nothing passes before; the end of a cooldown
}

type waiting struct {
	event event.Event
	due   time.Time
}

// Ready is an event whose time has come.
type Ready[Place comparable] struct {
	At    Place
	Event event.Event
}

// NewRates returns rates of which nothing was taken yet.
func NewRates[Place comparable]() *Rates[Place] { return &Rates[Place]{of: map[Place]*rates{}} }

// Take takes an event of a type. pass is whether it is to be published now; else it is
// dropped, or Ready returns it, or one in its place, later. The error wraps ErrRate.
func (r *Rates[Place]) Take(now time.Time, at Place, kind Type, e event.Event) (pass bool, err error) {
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
		if held := one.emotes[e.Trigger]; held == nil {
			one.emotes[e.Trigger] = &waiting{e, now.Add(emoteWithin)}
		} else if before, is := held.event.(event.Emote); is && e.Weight > before.Weight {
			held.event = e
		}
		return false, nil
	case event.LookAt:
		one.look = &waiting{e, now.Add(lookAfter)}
		return false, nil
	}
	return true, nil
}

// place is the rates of a place; of too many the one that was used the longest ago, and
// has nothing waiting where there is such, gives way.
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

// waiting is 1 where something waits for its time, else 0.
func (o *rates) waiting() int {
	if len(o.emotes) == 0 && o.look == nil {
		return 0
	}
	return 1
}

// within counts an action, and reports whether it is within its type's burst.
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

// Ready returns what has waited long enough.
func (r *Rates[Place]) Ready(now time.Time) (all []Ready[Place]) {
	for at, one := range r.of {
		for trigger, held := range one.emotes {
			if !now.Before(held.due) {
				all = append(all, Ready[Place]{at, held.event})
				delete(one.emotes, trigger)
			}
		}
		if held := one.look; held != nil && !now.Before(held.due) {
			all = append(all, Ready[Place]{at, held.event})
			one.look = nil
		}
	}
	return all
}

// Due is when Ready returns the next; the zero time is never.
func (r *Rates[Place]) Due() (next time.Time) {
	sooner := func(held *waiting) {
		if held != nil && (next.IsZero() || held.due.Before(next)) {
			next = held.due
		}
	}
	for _, one := range r.of {
		for _, held := range one.emotes {
			sooner(held)
		}
		sooner(one.look)
	}
	return next
}
