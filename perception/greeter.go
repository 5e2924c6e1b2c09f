package perception

import (
	"time"

	"perch/event"
	"perch/limit"
)

// mostGreeted bounds the people remembered as greeted.
const mostGreeted = 64

// greeter greets a face when it appears, and again with the name when it is recognized.
// A person who stays is not greeted again.
type greeter struct {
	*GreeterTuning
	hello time.Time // when a face without a name was last greeted
	at    time.Time // when to greet; zero means not at all
	known map[string]acquaintance
}

// acquaintance is the greeter's memory of a person.
type acquaintance struct{ seen, greeted time.Time }

func (*greeter) name() string          { return "greeter" }
func (g *greeter) nextStep() time.Time { return g.at }

func (g *greeter) step(m moment) []Act {
	switch m.perceived() {
	case faceDetected:
		if g.meets(m) {
			g.at = m.now.Add(g.Wait)
		}
	case faceRecognized:
		return g.person(m)
	}
	_, opened := m.event.(event.ListeningStarted)
	if g.at.IsZero() || m.now.Before(g.at) && !opened && !m.state.Listening {
		return nil
	}
	g.at = time.Time{}
	if !g.may(m) || !m.idleFor(g.AfterTalk) {
		return nil
	}
	g.hello = m.now
	return []Act{Say{Text: g.Hello, Usual: true, Greeting: true}}
}

// meets reports whether to greet a face without a name. A person who has just
// opened the microphone wants to talk.
func (g *greeter) meets(m moment) bool {
	return g.Hello != "" && m.passed(m.state.talk.listened, g.AfterTalk) &&
		m.passed(m.state.Woken, g.AfterTalk) && m.passed(g.hello, g.Every) && m.state.Face.Identity == "" && m.state.Face.Since.Equal(m.now)
}

// person greets a person by name, once per stay.
func (g *greeter) person(m moment) []Act {
	face := m.state.Face
	if face.Identity == "" || !face.Identified.Equal(m.now) {
		return nil // there is no name in it
	}
	before := g.known[face.Identity]
	now := before
	now.seen = m.now
	defer func() { g.remember(face.Identity, now) }()
	stayed := !before.greeted.IsZero() && !face.Since.After(before.greeted)
	if g.Named == "" || stayed || !m.passed(before.seen, g.EveryName) ||
		!g.may(m) || m.state.talking(m.now, g.AfterTalk) {
		return nil
	}
	now.greeted, g.at = m.now, time.Time{}
	return []Act{Say{Text: g.Named, Person: face.Identity, Usual: true, Greeting: true}, RefreshFace{}}
}

func (g *greeter) may(m moment) bool {
	inHours := g.Hours == (Hours{}) || g.Hours.Contains(m.local) // zero is all day, as for rules
	return inHours && !m.quiet && !m.state.Dancing && !m.state.asleep() && m.state.Face.Present
}

// remember stores a person, and forgets the one not seen for the longest time if necessary.
func (g *greeter) remember(name string, a acquaintance) {
	if g.known == nil {
		g.known = map[string]acquaintance{}
	}
	if _, there := g.known[name]; !there && len(g.known) >= mostGreeted {
		delete(g.known, limit.First(g.known, func(a, b acquaintance) int { return a.seen.Compare(b.seen) }))
	}
	g.known[name] = a
}
