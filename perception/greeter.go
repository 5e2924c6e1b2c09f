package perception

import (
	"time"

	"perch/event"
	"perch/limit"
)

// maxAcquaintances is the largest number of people that the greeter remembers.
const maxAcquaintances = 64

// greeter greets a face shortly after the face has appeared, and again by name when the person
// is recognized. A person who stays is not greeted again.
type greeter struct {
	*GreeterTuning
	lastHello     time.Time               // when a face without a name was last greeted
	helloDue      time.Time               // when to greet a face without a name; zero means never
	acquaintances map[string]acquaintance // key: name of the person
}

// acquaintance holds when a person was last seen and last greeted.
type acquaintance struct{ seen, greeted time.Time }

func (*greeter) name() string          { return "greeter" }
func (g *greeter) nextStep() time.Time { return g.helloDue }

func (g *greeter) step(m moment) []Act {
	switch m.perceived() {
	case faceDetected:
		if g.isNewFace(m) {
			g.helloDue = m.now.Add(g.Wait)
		}
	case faceRecognized:
		return g.greetByName(m)
	}
	_, opened := m.event.(event.ListeningStarted)
	if g.helloDue.IsZero() || m.now.Before(g.helloDue) && !opened && !m.state.Listening {
		return nil
	}
	g.helloDue = time.Time{}
	if !g.mayGreet(m) || !m.idleFor(g.AfterTalk) {
		return nil
	}
	g.lastHello = m.now
	return []Act{Say{Text: g.Hello, Translated: true, Greeting: true}}
}

// isNewFace reports whether a face without a name has just appeared and should be greeted.
// A person who has just opened the microphone wants to talk and is not greeted.
func (g *greeter) isNewFace(m moment) bool {
	return g.Hello != "" && m.hasPassed(m.state.conversation.listened, g.AfterTalk) && m.hasPassed(m.state.Woken, g.AfterTalk) &&
		m.hasPassed(g.lastHello, g.Every) && m.state.Face.Identity == "" && m.state.Face.Since.Equal(m.now)
}

// greetByName greets a recognized person, once per stay.
func (g *greeter) greetByName(m moment) []Act {
	face := m.state.Face
	if face.Identity == "" || !face.Identified.Equal(m.now) {
		return nil // the event does not contain a name
	}
	before := g.acquaintances[face.Identity]
	after := acquaintance{seen: m.now, greeted: before.greeted}
	defer func() { g.remember(face.Identity, after) }()
	stayed := !before.greeted.IsZero() && !face.Since.After(before.greeted)
	if g.Named == "" || stayed || !m.hasPassed(before.seen, g.EveryName) ||
		!g.mayGreet(m) || m.state.inConversation(m.now, g.AfterTalk) {
		return nil
	}
	after.greeted, g.helloDue = m.now, time.Time{}
	return []Act{Say{Text: g.Named, Person: face.Identity, Translated: true, Greeting: true}, RefreshFace{}}
}

// mayGreet reports whether greetings are allowed now, and a face is present.
func (g *greeter) mayGreet(m moment) bool {
	inHours := g.Hours == (Hours{}) || g.Hours.Contains(m.local)
	return inHours && !m.quiet && !m.state.Dancing && !m.state.isAsleep() && m.state.Face.Present
}

// remember stores an acquaintance. If there are too many, it deletes the person who has not
// been seen for the longest time.
func (g *greeter) remember(name string, a acquaintance) {
	if g.acquaintances == nil {
		g.acquaintances = map[string]acquaintance{}
	}
	if _, ok := g.acquaintances[name]; !ok && len(g.acquaintances) >= maxAcquaintances {
		delete(g.acquaintances, limit.First(g.acquaintances, func(a, b acquaintance) int { return a.seen.Compare(b.seen) }))
	}
	g.acquaintances[name] = a
}
