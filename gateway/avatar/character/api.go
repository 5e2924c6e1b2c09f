// Package character serves the API of the three.ws agent system: the actions of characters as
// a list and as a stream, their passports, and the actions that viewers report or request.
package character

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/agent/action"
	"perch/agent/skill"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
)

// robots are the registered robots.
type robots interface {
	// Trusts reports whether a robot was adopted by name.
	Trusts(id device.ID) bool
}

// passports are the passports of the characters, by id.
type passports interface {
	Passport(id string) (map[string]any, error)
	// Change sets the fields in body, a JSON object; null resets one.
	Change(id string, body []byte) (map[string]any, error)
}

// Options are the dependencies of an API. Only fields whose comment says so may be nil.
type Options struct {
	Bus    *event.Bus
	Log    *action.Log
	Who    action.Who
	Robots robots

	Passports passports

	Find func(robot string) (device.ID, error) // returns the robot with a MAC address or a name

	// Say has a robot speak; queued reports that it will speak later.
	Say func(ctx context.Context, id device.ID, text string) (queued bool, err error)

	// Remember stores a fact and publishes it.
	Remember func(agent.Entry, time.Time) (agent.Entry, error)

	// Perform performs a skill, publishes its events, and returns when it has ended. It is nil
	// on an appliance without skills.
	Perform  func(context.Context, skill.Call) (skill.Result, error)
	Language func(device.ID) string // of a robot, BCP 47, or of the household for no robot
}

// API is the API. Run publishes delayed events.
type API struct {
	o       Options
	pace    pace
	readers atomic.Int32
}

// New returns an API.
func New(o Options) *API { return &API{o: o, pace: newPace()} }

const (
	usualRecent = 10 // actions, unless a request gives a number
	mostRecent  = 200
)

func badQuery(why string) error {
	return &httpserver.Fault{Word: "bad_query", Sentence: why, HTTP: http.StatusBadRequest}
}

// typesOf returns the types in a query, separated by commas, or all of them.
func typesOf(query string, owned bool) (types []action.Type, err error) {
	if query == "" || query == "*" {
		return slices.DeleteFunc(action.Types(), func(kind action.Type) bool { return !owned && kind.Private() }), nil
	}
	for name := range strings.SplitSeq(query, ",") {
		kind := action.Type(strings.TrimSpace(name))
		if !kind.Valid() {
			return nil, badQuery("type is * or one of the fourteen types, such as speak, or several with commas between them")
		}
		if kind.Private() && !owned {
			return nil, &httpserver.Fault{Word: "owner_only", HTTP: http.StatusForbidden,
				Sentence: fmt.Sprintf("actions of the type %s are for the owner: they need the admin token", kind)}
		}
		types = append(types, kind)
	}
	return types, nil
}

// view selects the actions for a reader.
type view struct {
	agent string // the character's id; empty is all
	types []action.Type
	owned bool // the reader is the owner, who sees private parts
}

// recent returns the latest n actions of the view.
func (v view) recent(log *action.Log, n int) []action.Action {
	all := log.Recent(v.agent, v.types, n)
	for i, a := range all {
		all[i], _ = v.visible(a)
	}
	return all
}

// visible returns an action as the reader sees it. ok is false if it is hidden.
func (v view) visible(a action.Action) (_ action.Action, ok bool) {
	if v.agent != "" && a.Agent != v.agent || !slices.Contains(v.types, a.Type) {
		return action.Action{}, false
	}
	if v.owned {
		return a, true
	}
	return a.Shown()
}

// stream sends actions until the client leaves: those after lastID if that is an id of this run,
// or else those from now on.
func (a *API) stream(ctx context.Context, w http.ResponseWriter, lastID string, of view) error {
	defer a.readers.Add(-1)
	if a.readers.Add(1) > limit.Readers {
		return &httpserver.Fault{Word: "too_many_readers", Sentence: "too many programs read this feed already; close one",
			HTTP: http.StatusServiceUnavailable}
	}
	r := a.o.Bus.Read()
	if seq, ok := a.o.Bus.Resumes(lastID); ok {
		r = a.o.Bus.ReadFrom(seq + 1)
	}
	return httpserver.Stream(ctx, w, func(ctx context.Context) (httpserver.Message, error) {
		for {
			e, err := r.Next(ctx)
			if err != nil {
				return httpserver.Message{}, err
			}
			if _, lost := e.Event.(event.Missed); lost {
				return httpserver.Message{ID: a.o.Bus.ID(e.Seq), Event: event.Kind(e.Event), Data: e.Event}, nil
			}
			shown, ok := a.o.Log.Of(e)
			if ok {
				shown, ok = of.visible(shown)
			}
			if ok {
				return httpserver.Message{ID: a.o.Bus.ID(e.Seq), Event: string(shown.Type), Data: shown}, nil
			}
		}
	})
}
