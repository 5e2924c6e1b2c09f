package perception

import (
	"slices"
	"strings"
	"time"

	"perch/event"
)

// creature is one robot as its behaviours see it: its state, the owner of its
// head, and its last acts. It reads no clock either.
type creature struct {
	tuning     Tuning
	zone       *time.Location
	behaviours []behaviour
	state      State
	head       head
	greeted    time.Time
	played     time.Time
}

// deed is an act, and who wants it.
type deed struct {
	by  string
	act Act
	// patient acts are ordered by the owner's rules and may wait for earlier ones.
	patient bool
}

func newCreature(o Options) *creature {
	return &creature{tuning: o.Tuning, zone: o.Zone, behaviours: append(behaviours(o.Tuning), ruled(o.Rules)...)}
}

// talkHolds is how long a head belongs to the brain or client that moved it.
const talkHolds = 10 * time.Second

// movesHead reports whether a tool moves the head, and not only reads its angles.
func movesHead(tool string) bool {
	words := strings.FieldsFunc(tool, func(r rune) bool { return r == '.' || r == '_' || r == '-' })
	return strings.Contains(tool, "head") && !slices.Contains(words, "get")
}

// movedAt gives the head to a client that moved it then; the zero time is none.
func (c *creature) movedAt(now, at time.Time) {
	if until := at.Add(talkHolds); !at.IsZero() && now.Before(until) {
		c.head = head{InATalk, until}
	}
}

// take receives an event and returns the acts that follow from it.
func (c *creature) take(e event.Envelope) []deed {
	c.state = follow(c.state, e)
	if t, ok := e.Event.(event.ToolStatus); ok && t.Status == event.ToolRunning && movesHead(t.Name) {
		c.movedAt(e.At, e.At)
	}
	return c.step(e.At, e.Event)
}

// step returns the acts for an event, or those that are due if it is nil.
func (c *creature) step(now time.Time, e event.Event) (deeds []deed) {
	m := moment{now: now, local: now.In(c.zone), event: e, state: c.state.At(now)}
	m.quiet = c.tuning.Quiet.Hours.Contains(m.local)
	for _, b := range c.behaviours {
		if due := b.due(); e == nil && (due.IsZero() || now.Before(due)) {
			continue
		}
		m.greeted, m.played = c.greeted, c.played
		_, patient := b.(*rule)
		for _, a := range b.step(m) {
			if n, is := a.(Notify); is && m.quiet {
				n.Silent = true
				a = n
			}
			if c.may(m, a) {
				deeds = append(deeds, deed{b.name(), a, patient})
			}
		}
	}
	return deeds
}

// may reports whether to carry out an act, and notes it. A robot with a closed
// channel cannot be reached, and an act that is meant for now must not wait.
func (c *creature) may(m moment, a Act) bool {
	if m.quiet && silences(a) {
		return false
	}
	switch a.(type) {
	case Publish, Notify:
		return true
	}
	if !m.state.Online {
		return false
	}
	switch a := a.(type) {
	case TurnHead:
		return c.head.grant(m.now, a.Priority, a.Hold)
	case Say:
		if !m.state.Talking && !m.state.speaks {
			return false // it would be said in the next talk
		}
		if a.Greeting {
			c.greeted = m.now
		}
	case Play:
		if !m.state.Talking {
			return false
		}
		c.played = m.now
	}
	return true
}

// due is when tick must be called; the zero time is never.
func (c *creature) due() (due time.Time) {
	for _, b := range c.behaviours {
		if at := b.due(); !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}
