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
	"perch/gateway/door"
)

// snapshot is the first message of a stream that does not go on from where
// an earlier one ended.
type snapshot struct {
	States []shownState `json:"states"`
}

type shownState struct {
	agent.State
	Name  string      `json:"name,omitempty"` // that the robot is called by
	Shown agent.Shown `json:"state"`
}

// mostReaders bounds the readers of the events.
const mostReaders = 64

// stream sends events until the client goes.
func (d *Door) stream(ctx context.Context, w http.ResponseWriter, lastID string) error {
	defer d.readers.Add(-1)
	if d.readers.Add(1) > mostReaders {
		return &door.Fault{Word: "too_many_readers", Sentence: "too many programs read this feed already; close one",
			HTTP: http.StatusServiceUnavailable}
	}
	return door.Stream(ctx, w, d.feed(lastID))
}

// feed returns what a stream of events sends next: a snapshot of the board and
// all that came after it, or, for a client that sends the last id it saw in
// this run of the appliance, what came after that.
func (d *Door) feed(lastID string) func(context.Context) (door.Message, error) {
	if seq, ok := d.o.Bus.Resumes(lastID); ok {
		return d.follow(d.o.Bus.ReadFrom(seq + 1))
	}
	states, seq := d.o.Board.Snapshot()
	next := d.follow(d.o.Bus.ReadFrom(seq + 1))
	first := true
	return func(ctx context.Context) (door.Message, error) {
		if !first {
			return next(ctx)
		}
		first = false
		shown, now := snapshot{States: []shownState{}}, time.Now()
		for _, s := range states {
			shown.States = append(shown.States, shownState{s, d.o.Robots.Settings(s.Robot).Name, s.At(now)})
		}
		return door.Message{ID: d.o.Bus.ID(seq), Event: "snapshot", Data: shown}, nil
	}
}

func (d *Door) follow(r *event.Reader) func(context.Context) (door.Message, error) {
	return func(ctx context.Context) (door.Message, error) {
		e, err := r.Next(ctx)
		if err != nil {
			return door.Message{}, err
		}
		return door.Message{ID: d.o.Bus.ID(e.Seq), Event: event.Kind(e.Event), Data: shownEvent{e, d.o.Robots.Settings(e.Robot).Name}}, nil
	}
}

// shownEvent is an event with what its robot is called.
type shownEvent struct {
	event.Envelope
	Name string
}

// MarshalJSON adds the name to the envelope, which has a form of its own.
func (s shownEvent) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(s.Envelope)
	if err != nil || s.Name == "" {
		return text, err
	}
	name, err := json.Marshal(s.Name)
	return slices.Concat(text[:len(text)-1], []byte(`,"name":`), name, []byte("}")), err
}

// streamEnded separates the ordinary ends of a stream from a failure.
func streamEnded(err error) bool {
	return errors.Is(err, event.ErrClosed) || errors.Is(err, context.Canceled)
}
