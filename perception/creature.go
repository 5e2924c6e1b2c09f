package perception

import (
	"reflect"
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
	lost       time.Time // the robot is asked then where its head is; zero is never
	greeted    time.Time
	played     time.Time
	lit        time.Time // the lights, by somebody who is no mood and no gesture
}

// deed is an act, and who wants it.
type deed struct {
	by  string
	act Act
	// patient acts are ordered by the owner's rules and may wait for earlier ones.
	patient bool
}

func newCreature(o Options) *creature {
	c := &creature{zone: o.Zone}
	c.follow(o)
	return c
}

// follow takes over a tuning and rules. What a behaviour knows that goes on is kept.
func (c *creature) follow(o Options) {
	before := c.behaviours
	c.tuning = o.Tuning
	c.behaviours = append(behaviours(&c.tuning, o.Gestures), ruled(o.Rules)...)
	for i, b := range c.behaviours {
		same := slices.IndexFunc(before, func(old behaviour) bool {
			return reflect.TypeOf(old) == reflect.TypeOf(b) && (!isRule(b) || reflect.DeepEqual(old.(*rule).Rule, b.(*rule).Rule))
		})
		if same >= 0 {
			c.behaviours[i] = before[same]
		}
	}
}

// talkHolds is how long a head belongs to the brain or client that moved it.
const talkHolds = 10 * time.Second

// movesHead reports whether a tool moves the head, and not only reads its angles.
func movesHead(tool string) bool {
	words := strings.FieldsFunc(tool, func(r rune) bool { return r == '.' || r == '_' || r == '-' })
	return strings.Contains(tool, "head") && !slices.Contains(words, "get")
}

// lightsUp reports whether a tool may change the robot's lights.
func lightsUp(tool string) bool {
	words := strings.FieldsFunc(tool, func(r rune) bool { return r == '.' || r == '_' || r == '-' })
	return slices.ContainsFunc(words, func(w string) bool { return w == "led" || w == "light" || w == "lights" || w == "lamp" })
}

// movedAt gives the head to a client that moved it then; the zero time is none.
func (c *creature) movedAt(now, at time.Time) {
	if until := at.Add(talkHolds); !at.IsZero() && now.Before(until) {
		c.head, c.lost = head{InATalk, until}, until
	}
}

// headFinder is who tells where a head is that a tool or a client has turned.
const headFinder = "head"

// finds reports whether to ask where the head is: nobody else holds it any more, and no
// gesture is under way.
func (c *creature) finds() bool {
	return !c.lost.IsZero() && c.state.Online && c.poses().IsZero()
}

// take receives an event and returns the acts that follow from it.
func (c *creature) take(e event.Envelope) []deed {
	c.state = follow(c.state, e)
	if p, is := e.Event.(event.Perceived); is && p.Name == headTurn && field(p.Data).By == headFinder && !e.At.Before(c.head.until) {
		c.head = head{} // it is known where it is
	}
	if t, ok := e.Event.(event.ToolStatus); ok && t.Status == event.ToolRunning && movesHead(t.Name) {
		c.movedAt(e.At, e.At)
	}
	if t, ok := e.Event.(event.ToolStatus); ok && t.Status == event.ToolRunning && lightsUp(t.Name) {
		c.lit = e.At
	}
	return c.step(e.At, e.Event)
}

// step returns the acts for an event, or those that are due if it is nil.
func (c *creature) step(now time.Time, e event.Event) (deeds []deed) {
	if c.finds() && !now.Before(c.lost) {
		c.lost = time.Time{}
		deeds = append(deeds, deed{by: headFinder, act: FindHead{}})
	}
	m := moment{now: now, local: now.In(c.zone), event: e, state: c.state.At(now)}
	m.poses = c.poses()
	m.told = c.head.by == InATalk
	m.quiet = c.tuning.Quiet.Hours.Contains(m.local)
	for _, b := range c.behaviours {
		if due := b.due(); e == nil && (due.IsZero() || now.Before(due)) {
			continue
		}
		m.greeted, m.played, m.lit = c.greeted, c.played, c.lit
		acts := b.step(m)
		patient := isRule(b)
		asked := false // it knows of the quiet hours itself
		switch b.(type) {
		case *gesturer:
			m.poses = c.poses()
			asked, patient = true, m.poses.IsZero() // the robot is to be as it was, if late
		case *looker, *wearer:
			asked = true
		}
		for _, a := range acts {
			if n, is := a.(Notify); is && m.quiet {
				n.Silent = true
				a = n
			}
			if _, lights := a.(Lights); lights && isRule(b) {
				c.lit = now
			}
			if c.may(m, a, asked) {
				deeds = append(deeds, deed{b.name(), a, patient})
			}
		}
	}
	return deeds
}

// poses is when the gesture that is under way ends, and the zero time where none is.
func (c *creature) poses() time.Time {
	for _, b := range c.behaviours {
		if g, is := b.(*gesturer); is {
			return g.ends()
		}
	}
	return time.Time{}
}

func isRule(b behaviour) bool {
	_, is := b.(*rule)
	return is
}

// may reports whether to carry out an act, and notes it. A robot with a closed
// channel cannot be reached, and an act that is meant for now must not wait.
func (c *creature) may(m moment, a Act, asked bool) bool {
	if m.quiet && silences(a) && !asked {
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
	if c.finds() {
		due = c.lost
	}
	for _, b := range c.behaviours {
		if at := b.due(); !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}
