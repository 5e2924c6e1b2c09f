// Package character is the door to what the agents of this appliance are and do, in the
// words of the three.ws agent system: what a character has done, as a list and as a
// stream, and what a viewer of it reports or asks for.
package character

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"perch/agent/action"
	"perch/device"
	"perch/event"
	"perch/gateway/door"
)

// robots are the registered robots.
type robots interface {
	// Trusts reports whether a robot was adopted by name.
	Trusts(id device.ID) bool
}

// Options are what the door is made of. Only fields with a note may be nil.
type Options struct {
	Bus    *event.Bus
	Log    *action.Log
	Who    action.Who
	Robots robots
	Find   func(robot string) (device.ID, error) // the robot that is meant by a MAC address or a name

	// Say has a robot speak; queued is whether it does so later.
	Say func(ctx context.Context, id device.ID, text string) (queued bool, err error)

	// Remember keeps a fact that a viewer reports, and publishes that it is kept.
	Remember func(id device.ID, session string, fact event.Remembered) error

	// Perform has a skill do its work, publishes the skill's events and returns once
	// it is done. Nil is an appliance without skills.
	Perform func(ctx context.Context, id device.ID, session string, wish event.SkillStarted) error
}

// Door is the door. Run carries out what waits.
type Door struct {
	o       Options
	pace    pace
	readers atomic.Int32
}

// New returns the door.
func New(o Options) *Door { return &Door{o: o, pace: newPace()} }

const (
	mostBody    = 16 << 10 // bytes of an action
	mostReaders = 64       // of the stream
	usualRecent = 10       // actions, for who asks for no number
	mostRecent  = 200
)

func badQuery(why string) error {
	return &door.Fault{Word: "bad_query", Sentence: why, HTTP: http.StatusBadRequest}
}

// typesOf are the types that a query names, separated by commas; nil are all.
func typesOf(query string) (types []action.Type, err error) {
	if query == "" || query == "*" {
		return nil, nil
	}
	for name := range strings.SplitSeq(query, ",") {
		kind := action.Type(strings.TrimSpace(name))
		if !kind.Known() {
			return nil, badQuery("type is * or one of the fourteen types, such as speak, or several with commas between them")
		}
		types = append(types, kind)
	}
	return types, nil
}

// stream sends actions as they happen until the client goes. It goes on after the
// last id that a client of this run has seen, and else begins with the next action.
func (d *Door) stream(ctx context.Context, w http.ResponseWriter, lastID, agent string, types []action.Type) error {
	defer d.readers.Add(-1)
	if d.readers.Add(1) > mostReaders {
		return &door.Fault{Word: "too_many_readers", Sentence: "too many programs read this feed already; close one",
			HTTP: http.StatusServiceUnavailable}
	}
	r := d.o.Bus.Read()
	if seq, ok := d.o.Bus.Resumes(lastID); ok {
		r = d.o.Bus.ReadFrom(seq + 1)
	}
	return door.Stream(ctx, w, func(ctx context.Context) (door.Message, error) {
		for {
			e, err := r.Next(ctx)
			if err != nil {
				return door.Message{}, err
			}
			if _, lost := e.Event.(event.Missed); lost {
				return door.Message{ID: d.o.Bus.ID(e.Seq), Event: event.Kind(e.Event), Data: e.Event}, nil
			}
			if a, ok := d.o.Log.Of(e); ok && picked(a, agent, types) {
				return door.Message{ID: d.o.Bus.ID(e.Seq), Event: string(a.Type), Data: a}, nil
			}
		}
	})
}

// picked reports whether an action is of a character, or of any for the empty id, and of
// one of the types, or of any for none.
func picked(a action.Action, agent string, types []action.Type) bool {
	if agent != "" && a.Agent != agent {
		return false
	}
	for _, kind := range types {
		if a.Type == kind {
			return true
		}
	}
	return len(types) == 0
}
