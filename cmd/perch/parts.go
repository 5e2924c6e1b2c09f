package main

import (
	"cmp"
	"errors"
	"time"

	"perch/gateway/admin"
	"perch/voice"
)

// parts is the condition of each part. A brain is vital where no brain works.
func (a *app) parts() []admin.Part {
	parts := []admin.Part{{Name: "store", OK: a.db.Readable() == nil, Vital: true, Note: note(errors.Join(a.db.Readable(), a.db.Err()))}}
	thinks := a.engines.thinks()
	for _, n := range a.engines.all {
		part := n.shown()
		part.Vital = n.list == "brain" && !thinks
		parts = append(parts, part)
	}
	if a.wyoming != nil {
		parts = append(parts, admin.Part{Name: "wyoming", OK: true, Note: "serves " + a.at.String()})
	}
	if k := a.doors.certificate; k != nil {
		fine, err := k.condition(time.Now())
		part := admin.Part{Name: "tls", OK: !errors.Is(err, errDates), Note: fine}
		if err != nil {
			part.Note = err.Error()
		}
		parts = append(parts, part)
	}
	return append(parts, a.mqttPart(), a.mdnsPart(), a.diskPart(), a.clockPart())
}

// thinks reports whether any brain works, as far as is known.
func (e *engines) thinks() bool {
	for _, n := range e.all {
		if _, _, cause := n.status(); n.list == "brain" && cause == nil {
			return true
		}
	}
	return false
}

// shown is an engine's condition.
func (n *engine) shown() admin.Part {
	since, _, cause := n.status()
	part := admin.Part{Name: n.part, OK: cause == nil, Since: since, Note: n.where}
	switch {
	case cause != nil:
		part.Note = cause.Error()
	case n.limits() != nil:
		part.Note = n.limits().Error()
	case n.note != nil:
		part.Note = n.note()
	}
	return part
}

// patience is how long a session waits for the slowest of the brains: longer
// than that brain's driver does, which knows better what is wrong.
func (c *config) patience() time.Duration {
	longest := 3 * time.Minute
	for _, b := range c.Brains {
		own := time.Duration(b.Within)
		if b.Kind == "acp" {
			own = cmp.Or(own, 5*time.Minute) // a tool of an agent's may take long
		}
		longest = max(longest, own+10*time.Second)
	}
	return longest
}

// speechOf is in which language robots are spoken to, and what is expected of
// those who speak to them: the persona's, where it has one.
func speechOf(c *config) (voice.Options, error) {
	persona, err := personaOf(c)
	if err != nil {
		return voice.Options{}, err
	}
	return voice.Options{Language: cmp.Or(persona.Language, c.Language)}, nil
}

// counters are what parts count themselves.
func (a *app) counters() []admin.Counter {
	return []admin.Counter{
		{Name: "perch_perceived_dropped_total", Help: "Events beyond what a robot may sense in a second.", Count: a.senses.intake.Dropped},
		{Name: "perch_feed_readers_dropped_total", Help: "Readers of the perception feed that did not read.", Count: a.bridge.Dropped},
	}
}
