package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
)

// shownState is the state of a session in a message of the stream.
type shownState struct {
	agent.State
	Name  string      `json:"name,omitempty"` // name of the robot
	Shown agent.Shown `json:"state"`
}

// stream sends events until the client disconnects or the bus is closed. If withStates is true, it also sends each
// state that changes.
func (a *API) stream(ctx context.Context, w http.ResponseWriter, lastID string, withStates bool) error {
	defer a.readers.Add(-1)
	if a.readers.Add(1) > limit.Readers {
		return &httpserver.Fault{Word: "too_many_readers", Sentence: "too many programs read this feed already; close one",
			HTTP: http.StatusServiceUnavailable}
	}
	return httpserver.Stream(ctx, w, a.feed(lastID, withStates).next)
}

// feed makes the messages of one stream.
type feed struct {
	api        *API
	states     *agent.Follower
	events     *event.Reader
	sent       uint64               // Seq of the latest event that was sent
	withStates bool                 // send each state that changes
	waiting    []httpserver.Message // messages to send
}

// feed returns a feed that starts with a snapshot of the board, which holds the states of all sessions. If lastID is
// the ID of an event of this run of the appliance, the feed starts instead with the event that follows that one, after
// all states if withStates is true.
func (a *API) feed(lastID string, withStates bool) *feed {
	f := &feed{api: a, states: a.o.Board.NewFollower(time.Now()), withStates: withStates}
	seq, resumes := a.o.Bus.ParseID(lastID)
	kind, from := "states", seq
	if !resumes {
		kind, seq, from = "snapshot", f.states.Seq(), f.states.Seq()
	} else if withStates {
		from = min(seq, f.states.Seq()) // the client may have received events that the board has not processed yet
	}
	f.sent, f.events = seq, a.o.Bus.ReadFrom(from+1)
	if withStates || !resumes {
		f.send(kind, f.states.States(), time.Now())
	}
	return f
}

// send queues a message with states as they are at the given time.
func (f *feed) send(kind string, states []agent.State, at time.Time) {
	f.queue(f.sent, kind, map[string]any{"states": f.api.shownStates(states, at)})
}

// shownStates returns states as they are at the given time.
func (a *API) shownStates(states []agent.State, at time.Time) []shownState {
	shown := []shownState{}
	for _, s := range states {
		shown = append(shown, shownState{s, a.o.Robots.Settings(s.Robot).Name, s.At(at)})
	}
	return shown
}

// sessions returns the states of all sessions.
func (a *API) sessions(now time.Time) []shownState {
	states, _ := a.o.Board.Snapshot()
	return a.shownStates(states, now)
}

func (f *feed) queue(seq uint64, kind string, data any) {
	f.waiting = append(f.waiting, httpserver.Message{ID: f.api.o.Bus.ID(seq), Event: kind, Data: data})
}

// next waits for the next message and returns it.
func (f *feed) next(ctx context.Context) (m httpserver.Message, err error) {
	for len(f.waiting) == 0 {
		if err := f.read(ctx); err != nil {
			return httpserver.Message{}, err
		}
	}
	m, f.waiting = f.waiting[0], f.waiting[1:]
	return m, nil
}

// read waits for an event, or until a state expires, and queues the messages about the event or the state.
func (f *feed) read(ctx context.Context) error {
	wait, cancel := ctx, context.CancelFunc(func() {})
	if due := f.states.NextExpiry(); f.withStates && !due.IsZero() {
		wait, cancel = context.WithDeadline(ctx, due)
	}
	defer cancel()
	e, err := f.events.Next(wait)
	var changes []agent.Change
	switch {
	case err == nil:
		changes = f.states.HandleEvent(e)
		if _, missed := e.Event.(event.Missed); missed || e.Seq > f.sent {
			f.sent = e.Seq
			f.queue(e.Seq, event.Kind(e.Event), shownEvent{e, f.api.o.Robots.Settings(e.Robot).Name})
		}
	case ctx.Err() == nil && wait.Err() != nil:
		changes = f.states.Expire(time.Now())
	default:
		return err
	}
	for _, c := range changes {
		if f.withStates && !c.Gone {
			f.send("states", []agent.State{c.State}, c.At)
		}
	}
	return nil
}

// shownEvent is an event in a message of the stream.
type shownEvent struct {
	event.Envelope
	Name string // name of the robot; may be empty
}

// MarshalJSON returns the JSON of the envelope with the name as an additional field.
func (s shownEvent) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(s.Envelope)
	if err != nil || s.Name == "" {
		return text, err
	}
	name, err := json.Marshal(s.Name)
	return slices.Concat(text[:len(text)-1], []byte(`,"name":`), name, []byte("}")), err
}

// streamEnded reports whether an error is the normal end of a stream.
func streamEnded(err error) bool {
	return errors.Is(err, event.ErrClosed) || errors.Is(err, context.Canceled)
}
