package admin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
	Shown agent.Shown `json:"state"`
}

// feed returns what a stream of events sends next: a snapshot of the board and
// all that came after it, or, for a client that tells the last id it saw in
// this run of the appliance, what came after that.
func (d *Door) feed(lastID string) func(context.Context) (door.Message, error) {
	if seq, ok := d.resumes(lastID); ok {
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
		return door.Message{ID: d.id(seq), Event: "snapshot", Data: snap(states, time.Now())}, nil
	}
}

func snap(states []agent.State, now time.Time) snapshot {
	shown := snapshot{States: []shownState{}}
	for _, s := range states {
		shown.States = append(shown.States, shownState{s, s.At(now)})
	}
	return shown
}

func (d *Door) follow(r *event.Reader) func(context.Context) (door.Message, error) {
	return func(ctx context.Context) (door.Message, error) {
		e, err := r.Next(ctx)
		if err != nil {
			return door.Message{}, err
		}
		return door.Message{ID: d.id(e.Seq), Event: event.Kind(e.Event), Data: e}, nil
	}
}

func (d *Door) id(seq uint64) string { return fmt.Sprintf("%s.%d", d.o.Bus.Run(), seq) }

// resumes reads "<run>.<seq>". An id of another run means nothing here.
func (d *Door) resumes(id string) (seq uint64, ok bool) {
	run, number, found := strings.Cut(id, ".")
	if !found || run != d.o.Bus.Run() {
		return 0, false
	}
	seq, err := strconv.ParseUint(number, 10, 64)
	return seq, err == nil && seq <= d.o.Bus.Seq()
}

// streamEnded tells the ordinary ends of a stream from a failure.
func streamEnded(err error) bool {
	return errors.Is(err, event.ErrClosed) || errors.Is(err, context.Canceled)
}
