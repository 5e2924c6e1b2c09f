// Package character serves the API of the three.ws agent system: the actions of characters as
// a list and as a stream, the passports of characters (name, home page, wallet address and other
// data about the identity), and the actions that viewers report or request. A viewer is a program that
// shows a character.
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
	// Trusts reports whether a robot is adopted.
	Trusts(id device.ID) bool
}

// passports holds the passports of the characters. id is the ID of a character.
type passports interface {
	Passport(id string) (map[string]any, error)
	// Change sets the fields of body, which is a JSON object. A field that is null is reset
	// to its default. Change returns the new passport.
	Change(id string, body []byte) (map[string]any, error)
}

// Options are the dependencies of an API. Only fields whose comment says so may be nil.
type Options struct {
	Bus    *event.Bus
	Log    *action.Log
	Who    action.Who
	Robots robots
	Board  *agent.Board

	Passports passports

	Find func(robot string) (device.ID, error) // returns the robot with a MAC address or a name

	// Say has a robot speak. queued is true if the robot will speak once it connects.
	Say func(ctx context.Context, id device.ID, text string) (queued bool, err error)

	// Remember stores a fact, and publishes an event about it.
	Remember func(agent.Entry, time.Time) (agent.Entry, error)

	// Perform performs a skill, publishes the skill's events, and returns when the skill has
	// ended. It is nil on an appliance without skills.
	Perform func(context.Context, skill.Call) (skill.Result, error)

	// Language returns the BCP 47 language tag of a robot, or the appliance's default language
	// if the ID is empty.
	Language func(device.ID) string
}

// API serves the API. Run publishes delayed events.
type API struct {
	o       Options
	limiter limiter
	readers atomic.Int32 // number of streams
}

// New returns an API.
func New(o Options) *API { return &API{o: o, limiter: newLimiter()} }

// Default and maximum number of actions in a list.
const (
	defaultRecent = 10
	maxRecent     = 200
)

// badQuery returns an error about the query of a request.
func badQuery(sentence string) error {
	return &httpserver.Fault{Word: "bad_query", Sentence: sentence, HTTP: http.StatusBadRequest}
}

// parseTypes returns the types in a query, which are separated by commas. An empty query and "*"
// select all types that the reader may see.
func parseTypes(query string, isOwner bool) (types []action.Type, err error) {
	if query == "" || query == "*" {
		return slices.DeleteFunc(action.Types(), func(kind action.Type) bool { return !isOwner && kind.Private() }), nil
	}
	for name := range strings.SplitSeq(query, ",") {
		kind := action.Type(strings.TrimSpace(name))
		if !kind.Valid() {
			return nil, badQuery("type must be * or one of the fourteen types, such as speak, or several separated by commas")
		}
		if kind.Private() && !isOwner {
			return nil, &httpserver.Fault{Word: "owner_only", HTTP: http.StatusForbidden,
				Sentence: fmt.Sprintf("actions of the type %s are for the owner only; send the admin token", kind)}
		}
		types = append(types, kind)
	}
	return types, nil
}

// view selects the actions for one reader of the list or the stream.
type view struct {
	agent   string // ID of a character, or "" for all characters
	types   []action.Type
	isOwner bool // whether the reader is the owner, who also gets private fields
}

// recent returns the latest n actions of the view.
func (v view) recent(log *action.Log, n int) []action.Action {
	actions := log.Recent(v.agent, v.types, n)
	for i, a := range actions {
		actions[i], _ = v.filter(a)
	}
	return actions
}

// filter returns an action without the fields that the reader may not see. ok is false if the view
// does not include the action.
func (v view) filter(a action.Action) (_ action.Action, ok bool) {
	if v.agent != "" && a.Agent != v.agent || !slices.Contains(v.types, a.Type) {
		return action.Action{}, false
	}
	if v.isOwner {
		return a, true
	}
	return a.Shown()
}

// stream sends actions until the client disconnects. If lastID is the ID of an event since the start of the
// appliance, the stream begins with the first later action that the bus still has, and otherwise with the next
// action. Before it, and later, an event.Missed reports lost events. stream returns an error if limit.Readers
// streams are open already.
func (a *API) stream(ctx context.Context, w http.ResponseWriter, lastID string, v view) error {
	defer a.readers.Add(-1)
	if a.readers.Add(1) > limit.Readers {
		return &httpserver.Fault{Word: "too_many_readers", Sentence: "too many programs read this feed; close one",
			HTTP: http.StatusServiceUnavailable}
	}
	r := a.o.Bus.Read()
	if seq, ok := a.o.Bus.ParseID(lastID); ok {
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
				shown, ok = v.filter(shown)
			}
			if ok {
				return httpserver.Message{ID: a.o.Bus.ID(e.Seq), Event: string(shown.Type), Data: shown}, nil
			}
		}
	})
}
