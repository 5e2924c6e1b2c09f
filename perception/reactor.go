package perception

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"perch/event"
)

// reactor runs the behaviours of one robot. It reads no clock.
type reactor struct {
	tuning     Tuning
	zone       *time.Location
	behaviours []behaviour
	state      State
	head       head
	findHeadAt time.Time // when to request FindHead; zero means never
	greetedAt  time.Time // when a face was last greeted
	playedAt   time.Time // when a behaviour last played a sound
	litAt      time.Time // when a rule, an agent or a client last set the lights
	movedAt    time.Time // when an agent or a client last moved the head
}

// request is an act requested by a behaviour.
type request struct {
	by  string // name of the behaviour
	act Act
	// patient allows the act to wait longer for earlier acts before the act is dropped.
	patient bool
}

func newReactor(o Options) *reactor {
	c := &reactor{zone: o.Zone}
	c.applyOptions(o)
	return c
}

// applyOptions applies the tuning and the rules. Behaviours that are still enabled, and rules that are
// unchanged, keep their state.
func (c *reactor) applyOptions(o Options) {
	before := c.behaviours
	c.tuning = o.Tuning
	c.behaviours = append(enabledBehaviours(&c.tuning, o.Gestures), ruleBehaviours(o.Rules)...)
	for i, b := range c.behaviours {
		same := slices.IndexFunc(before, func(old behaviour) bool {
			return reflect.TypeOf(old) == reflect.TypeOf(b) && (!isRule(b) || reflect.DeepEqual(old.(*rule).Rule, b.(*rule).Rule))
		})
		if same >= 0 {
			c.behaviours[i] = before[same]
		}
	}
}

// clientHold is how long the head stays reserved after an agent, or a client (a program that
// calls the robot's tools), has moved the head.
const clientHold = 10 * time.Second

// hasWord reports whether the name of a tool contains one of the words.
func hasWord(tool string, words ...string) bool {
	parts := strings.FieldsFunc(tool, func(r rune) bool { return r == '.' || r == '_' || r == '-' })
	return slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(words, p) })
}

// movesHead reports whether a tool may move the head, by the tool's name.
func movesHead(tool string) bool { return strings.Contains(tool, "head") && !hasWord(tool, "get") }

// setsLights reports whether a tool may change the robot's lights, by the tool's name.
func setsLights(tool string) bool { return hasWord(tool, "led", "light", "lights", "lamp") }

// handleTool handles a tool call by an agent or a client. If the tool moves the head, handleTool reserves
// the head for clientHold and makes FindHead due afterwards. If the tool sets the lights, handleTool sets
// c.litAt. arguments is nil if the arguments are unknown.
func (c *reactor) handleTool(tool string, arguments map[string]any, now time.Time) {
	if movesHead(tool) {
		c.state.Head.setAngles(arguments["yaw"], arguments["pitch"])
		until := now.Add(clientHold)
		c.head, c.findHeadAt, c.movedAt = head{PriorityTalk, until}, until, now
	}
	if setsLights(tool) {
		c.litAt = now
	}
}

// headFinder is the name under which FindHead is requested, in place of a behaviour's name.
const headFinder = "head"

// canFindHead reports whether FindHead is due at c.findHeadAt: an agent or a client has moved the
// head, the robot is online, and no gesture is under way.
func (c *reactor) canFindHead() bool {
	return !c.findHeadAt.IsZero() && c.state.Online && c.gestureEnds().IsZero()
}

// handleEvent applies an event and returns the requested acts.
func (c *reactor) handleEvent(e event.Envelope) []request {
	c.state = fold(c.state, e)
	if p, ok := e.Event.(event.Perceived); ok && p.Name == headTurn && decodeFields(p.Data).By == headFinder && !e.At.Before(c.head.until) {
		c.head = head{} // the position is known again
	}
	if t, ok := e.Event.(event.ToolStatus); ok && t.Status == event.ToolRunning {
		c.handleTool(t.Name, nil, e.At)
	}
	return c.step(e.At, e.Event)
}

// step returns the requested acts after an event, or the due acts if e is nil.
func (c *reactor) step(now time.Time, e event.Event) (requests []request) {
	if c.canFindHead() && !now.Before(c.findHeadAt) {
		c.findHeadAt = time.Time{}
		requests = append(requests, request{by: headFinder, act: FindHead{}})
	}
	m := moment{now: now, local: now.In(c.zone), event: e, state: c.state.At(now), gestureEnds: c.gestureEnds(),
		movedByClient: c.head.priority == PriorityTalk}
	m.quiet = c.tuning.Quiet.Hours.Contains(m.local)
	for _, b := range c.behaviours {
		if due := b.nextStep(); e == nil && (due.IsZero() || now.Before(due)) {
			continue
		}
		m.greetedAt, m.playedAt, m.litAt = c.greetedAt, c.playedAt, c.litAt
		acts := b.step(m)
		patient := isRule(b)
		handlesQuiet := false // whether the behaviour decides itself what to do in the quiet hours
		switch b.(type) {
		case *gesturer:
			m.gestureEnds = c.gestureEnds()
			if g, ok := e.(event.Gesture); ok && g.By == event.ByOwner && !m.gestureEnds.IsZero() {
				c.head = head{} // the owner's gesture has precedence over an earlier turn by an agent or a client
			}
			handlesQuiet, patient = true, m.gestureEnds.IsZero() // acts that restore the robot after a gesture are patient
		case *lookAtTurner, *moodDisplay:
			handlesQuiet = true
		}
		for _, a := range acts {
			if n, ok := a.(Notify); ok && m.quiet {
				n.Silent = true
				a = n
			}
			if _, lights := a.(Lights); lights && isRule(b) {
				c.litAt = now
			}
			if c.permit(m, a, handlesQuiet) {
				requests = append(requests, request{b.name(), a, patient})
			}
		}
		if _, ok := b.(*gesturer); ok && m.gestureEnds.IsZero() && now.Before(c.findHeadAt) {
			c.head = head{PriorityTalk, c.findHeadAt} // the reservation that an owner's gesture has interrupted
		}
	}
	return requests
}

// gestureEnds returns when the gesture under way ends, or the zero time without a gesture.
func (c *reactor) gestureEnds() time.Time {
	for _, b := range c.behaviours {
		if g, ok := b.(*gesturer); ok {
			return g.ends()
		}
	}
	return time.Time{}
}

func isRule(b behaviour) bool {
	_, ok := b.(*rule)
	return ok
}

// permit reports whether to execute an act now, and if so records a turn, a greeting or a sound. It
// returns false for an act that isSuppressed drops in the quiet hours, unless handlesQuiet is true;
// for an act on a robot that is offline; for a turn while the head is reserved; and for a text or a
// sound that the robot cannot play now.
func (c *reactor) permit(m moment, a Act, handlesQuiet bool) bool {
	if m.quiet && isSuppressed(a) && !handlesQuiet {
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
		return c.head.reserve(m.now, a.Priority, a.Hold)
	case Say:
		if !m.state.Talking && !m.state.speaks {
			return false // the text would be queued until the next conversation
		}
		if a.Greeting {
			c.greetedAt = m.now
		}
	case Play:
		if !m.state.Talking {
			return false
		}
		c.playedAt = m.now
	}
	return true
}

// nextStep returns when step must be called; the zero time means never.
func (c *reactor) nextStep() (due time.Time) {
	if c.canFindHead() {
		due = c.findHeadAt
	}
	for _, b := range c.behaviours {
		if at := b.nextStep(); !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}
