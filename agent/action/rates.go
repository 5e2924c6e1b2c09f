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
	minGestureInterval = 600 * time.Millisecond // time after an admitted gesture; further gestures are dropped during it
	emoteDelay         = 150 * time.Millisecond // of the emotes with the same trigger within this time, the strongest is published
	lookDelay          = 100 * time.Millisecond // a look is published unless another arrives within this time

	burstInterval = 100 * time.Millisecond
	cooldown      = time.Second // no action of the type is accepted for this time after too large a burst

	maxPlaces = 256 // a further place replaces another (see Rates.place)
)

// maxBurst returns how many actions of a type may arrive within burstInterval.
func maxBurst(kind Type) int {
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

// ErrRate is wrapped by the errors of Admit for actions of a type that arrive too fast. The
// error names the type.
var ErrRate = errors.New("too many actions")

// Rates limits the rate of viewers' actions, separately for each Place, such as a robot or a
// session. Rates is not safe for concurrent use and reads no clock.
type Rates[Place comparable] struct {
	places map[Place]*rates
}

// rates is the state of one place.
type rates struct {
	used    time.Time           // when Admit was last called for the place
	bursts  map[Type]*burst     // the latest burst of each type
	gesture time.Time           // when a gesture was last admitted
	emotes  map[string]*delayed // the delayed emotes, by trigger
	look    *delayed            // the delayed look; nil if none exists
}

// burst counts the actions of a type within burstInterval.
type burst struct {
	started time.Time
	count   int
	blocked time.Time // end of the cooldown; zero without a cooldown
}

// delayed is an event that is published later, unless a stronger emote with the same trigger or a later
// look replaces it, or the place is dropped.
type delayed struct {
	event event.Event
	due   time.Time
}

// Ready is a delayed event that is due.
type Ready[Place comparable] struct {
	At    Place
	Event event.Event
}

// NewRates returns Rates that have not admitted any action.
func NewRates[Place comparable]() *Rates[Place] { return &Rates[Place]{places: map[Place]*rates{}} }

// Admit handles an event of an action. If publish is true, the caller publishes the event
// now. Otherwise the event is dropped, or delayed: then the method Ready returns it later,
// merged with similar events. Errors wrap ErrRate.
func (r *Rates[Place]) Admit(now time.Time, at Place, kind Type, e event.Event) (publish bool, err error) {
	p := r.place(now, at)
	if !p.count(now, kind) {
		return false, fmt.Errorf("%w: more than %d of %s were sent within %d ms; none is accepted until %d ms after that", ErrRate,
			maxBurst(kind), kind, burstInterval.Milliseconds(), cooldown.Milliseconds())
	}
	switch e := e.(type) {
	case event.Gesture:
		if now.Sub(p.gesture) < minGestureInterval {
			return false, nil
		}
		p.gesture = now
		return true, nil
	case event.Emote:
		if earlier := p.emotes[e.Trigger]; earlier == nil {
			p.emotes[e.Trigger] = &delayed{e, now.Add(emoteDelay)}
		} else if emote, ok := earlier.event.(event.Emote); ok && e.Weight > emote.Weight {
			earlier.event = e
		}
		return false, nil
	case event.LookAt:
		p.look = &delayed{e, now.Add(lookDelay)}
		return false, nil
	}
	return true, nil
}

// place returns the state of a place. If there are too many places, it drops the least
// recently used place, preferably a place without delayed events.
func (r *Rates[Place]) place(now time.Time, at Place) *rates {
	p := r.places[at]
	if p == nil {
		if len(r.places) >= maxPlaces {
			delete(r.places, limit.First(r.places, func(a, b *rates) int { return cmp.Or(a.rank()-b.rank(), a.used.Compare(b.used)) }))
		}
		p = &rates{bursts: map[Type]*burst{}, emotes: map[string]*delayed{}}
		r.places[at] = p
	}
	p.used = now
	return p
}

// rank returns 1 if an event is delayed, and otherwise 0. Places with a lower rank are
// dropped first.
func (p *rates) rank() int {
	if len(p.emotes) == 0 && p.look == nil {
		return 0
	}
	return 1
}

// count counts an action, and reports whether the burst limit of its type permits it.
func (p *rates) count(now time.Time, kind Type) bool {
	b := p.bursts[kind]
	if b == nil {
		b = &burst{}
		p.bursts[kind] = b
	}
	if now.Before(b.blocked) {
		return false
	}
	if now.Sub(b.started) >= burstInterval {
		b.started, b.count = now, 0
	}
	if b.count++; b.count > maxBurst(kind) {
		*b = burst{blocked: now.Add(cooldown)}
		return false
	}
	return true
}

// Ready returns the delayed events that are due, and removes them.
func (r *Rates[Place]) Ready(now time.Time) (due []Ready[Place]) {
	for at, p := range r.places {
		for trigger, d := range p.emotes {
			if !now.Before(d.due) {
				due = append(due, Ready[Place]{at, d.event})
				delete(p.emotes, trigger)
			}
		}
		if d := p.look; d != nil && !now.Before(d.due) {
			due = append(due, Ready[Place]{at, d.event})
			p.look = nil
		}
	}
	return due
}

// NextReady returns when the next delayed event is due; the zero time means never.
func (r *Rates[Place]) NextReady() (next time.Time) {
	include := func(d *delayed) {
		if d != nil && (next.IsZero() || d.due.Before(next)) {
			next = d.due
		}
	}
	for _, p := range r.places {
		for _, d := range p.emotes {
			include(d)
		}
		include(p.look)
	}
	return next
}
