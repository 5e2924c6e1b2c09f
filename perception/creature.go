package perception

import (
	"slices"
	"strings"
	"time"

	"perch/event"
)

// creature is one robot as its behaviours see it: what is known of it, who
// turns its head, and what was last done. Like them it reads no clock.
type creature struct {
	tuning     Tuning
	house      *time.Location
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
	// patient is what its owner has ordered: it may wait for what comes before.
	patient bool
}

func newCreature(o Options) *creature {
	return &creature{tuning: o.Tuning, house: o.House, behaviours: append(behaviours(o.Tuning), ruled(o.Rules)...)}
}

// talkHolds is how long the head is its brain's after that has moved it, or
// whoever else has.
const talkHolds = 10 * time.Second

// movesHead reports whether a tool moves the head: one that only tells where it
// is does not.
func movesHead(tool string) bool {
	words := strings.FieldsFunc(tool, func(r rune) bool { return r == '.' || r == '_' || r == '-' })
	return strings.Contains(tool, "head") && !slices.Contains(words, "get")
}

// movedAt gives the head to whoever moved it then; the zero time is nobody.
func (c *creature) movedAt(now, at time.Time) {
	if until := at.Add(talkHolds); !at.IsZero() && now.Before(until) {
		c.head = head{InATalk, until}
	}
}

// take is told what has happened, and says what is to be done.
func (c *creature) take(e event.Envelope) []deed {
	c.state = follow(c.state, e)
	if t, ok := e.Event.(event.ToolStatus); ok && t.Status == event.ToolRunning && movesHead(t.Name) {
		c.movedAt(e.At, e.At)
	}
	return c.step(e.At, e.Event)
}

// tick says what is to be done because time has passed.
func (c *creature) tick(now time.Time) []deed { return c.step(now, nil) }

func (c *creature) step(now time.Time, e event.Event) (deeds []deed) {
	m := moment{now: now, local: now.In(c.house), event: e, state: c.state.At(now)}
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

// may tells whether an act is to be done, and notes it. A robot whose channel
// is closed cannot be reached, and what is of this moment must not wait.
func (c *creature) may(m moment, a Act) bool {
	if m.quiet && silences(a) {
		return false
	}
	switch a.(type) {
	case Tell, Notify:
		return true
	}
	if !m.state.Online {
		return false
	}
	switch a := a.(type) {
	case TurnHead:
		return c.head.grant(m.now, a.Priority, a.Hold)
	case Say:
		if a.Greeting {
			c.greeted = m.now
		}
	case Play:
		c.played = m.now
	}
	return true
}

// due is when time must be told to it, and the zero time for never.
func (c *creature) due() (due time.Time) {
	for _, b := range c.behaviours {
		if at := b.due(); !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}
