package perception

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"perch/event"
)

// reactor holds the behaviours of one robot with the state, the head's reservation and
// the latest acts. It reads no clock.
type reactor struct {
	tuning     Tuning
	zone       *time.Location
	behaviours []behaviour
	state      State
	head       head
	lost       time.Time // when to ask the robot for its head's position; zero means never
	greeted    time.Time
	played     time.Time
	lit        time.Time // when the lights were last set, except by a mood or a gesture
}

// request is an act requested by a behaviour.
type request struct {
	by  string
	act Act
	// patient marks acts of the owner's rules, which may wait for earlier ones.
	patient bool
}

func newReactor(o Options) *reactor {
	c := &reactor{zone: o.Zone}
	c.applyOptions(o)
	return c
}

// applyOptions applies a tuning and rules. Behaviours that stay enabled retain their state.
func (c *reactor) applyOptions(o Options) {
	before := c.behaviours
	c.tuning = o.Tuning
	c.behaviours = append(behaviours(&c.tuning, o.Gestures), ruleBehaviours(o.Rules)...)
	for i, b := range c.behaviours {
		same := slices.IndexFunc(before, func(old behaviour) bool {
			return reflect.TypeOf(old) == reflect.TypeOf(b) && (!isRule(b) || reflect.DeepEqual(old.(*rule).Rule, b.(*rule).Rule))
		})
		if same >= 0 {
			c.behaviours[i] = before[same]
		}
	}
}

// talkHolds is how long a brain or client reserves the head that it moved.
const talkHolds = 10 * time.Second

// hasWord reports whether the name of a tool contains one of some words.
func hasWord(tool string, words ...string) bool {
	own := strings.FieldsFunc(tool, func(r rune) bool { return r == '.' || r == '_' || r == '-' })
	return slices.ContainsFunc(own, func(w string) bool { return slices.Contains(words, w) })
}

// movesHead reports whether a tool moves the head, rather than only reading its angles.
func movesHead(tool string) bool { return strings.Contains(tool, "head") && !hasWord(tool, "get") }

// setsLights reports whether a tool may change the robot's lights.
func setsLights(tool string) bool { return hasWord(tool, "led", "light", "lights", "lamp") }

// movedAt reserves the head for a client that moved it then; the zero time means no move.
func (c *reactor) movedAt(now, at time.Time) {
	if until := at.Add(talkHolds); !at.IsZero() && now.Before(until) {
		c.head, c.lost = head{PriorityTalk, until}, until
	}
}

// headFinder is the name under which FindHead is requested.
const headFinder = "head"

// finds reports whether to ask for the head's position: it is not reserved, and no
// gesture is under way.
func (c *reactor) finds() bool {
	return !c.lost.IsZero() && c.state.Online && c.poses().IsZero()
}

// handleEvent applies an event and returns the requested acts.
func (c *reactor) handleEvent(e event.Envelope) []request {
	c.state = fold(c.state, e)
	if p, is := e.Event.(event.Perceived); is && p.Name == headTurn && field(p.Data).By == headFinder && !e.At.Before(c.head.until) {
		c.head = head{} // its position is known
	}
	if t, ok := e.Event.(event.ToolStatus); ok && t.Status == event.ToolRunning {
		if movesHead(t.Name) {
			c.movedAt(e.At, e.At)
		}
		if setsLights(t.Name) {
			c.lit = e.At
		}
	}
	return c.step(e.At, e.Event)
}

// step returns the acts for an event, or the due acts if it is nil.
func (c *reactor) step(now time.Time, e event.Event) (requests []request) {
	if c.finds() && !now.Before(c.lost) {
		c.lost = time.Time{}
		requests = append(requests, request{by: headFinder, act: FindHead{}})
	}
	m := moment{now: now, local: now.In(c.zone), event: e, state: c.state.At(now), poses: c.poses(), moved: c.head.by == PriorityTalk}
	m.quiet = c.tuning.Quiet.Hours.Contains(m.local)
	for _, b := range c.behaviours {
		if due := b.nextStep(); e == nil && (due.IsZero() || now.Before(due)) {
			continue
		}
		m.greeted, m.played, m.lit = c.greeted, c.played, c.lit
		acts := b.step(m)
		patient := isRule(b)
		asked := false // it handles the quiet hours itself
		switch b.(type) {
		case *gesturer:
			m.poses = c.poses()
			asked, patient = true, m.poses.IsZero() // the robot must be restored, even if late
		case *looker, *moodDisplay:
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
				requests = append(requests, request{b.name(), a, patient})
			}
		}
	}
	return requests
}

// poses returns when the gesture under way ends, or the zero time.
func (c *reactor) poses() time.Time {
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

// may reports whether to execute an act, and records it. A robot with a closed
// channel cannot be reached, and immediate acts must not wait for it.
func (c *reactor) may(m moment, a Act, asked bool) bool {
	if m.quiet && suppressed(a) && !asked {
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

// nextStep returns when step must be called; the zero time means never.
func (c *reactor) nextStep() (due time.Time) {
	if c.finds() {
		due = c.lost
	}
	for _, b := range c.behaviours {
		if at := b.nextStep(); !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}
