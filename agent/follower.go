package agent

import (
	"maps"
	"time"

	"perch/device"
	"perch/event"
)

// Follower is one reader of a board: its snapshot, then each event with the
// states that it changes, folded by the board's own rules. The states are those
// at the event that was taken last, not the board's, which may be ahead of it or
// behind. One goroutine uses a Follower, or its owner locks it.
//
//	f := board.Follow(time.Now())
//	// show f.States()
//	f.Reader(bus).Each(ctx, func(e event.Envelope) {
//		for _, c := range f.Take(e) {
//			// show c.State as it is at c.At
//		}
//	})
type Follower struct {
	board   *Board
	states  states
	due     map[string]time.Time // when a session's state changes by itself
	changes []Change
}

// Change is a session's next state.
type Change struct {
	State State
	At    time.Time
	// By is the event that changed it: Missed where events were lost and the state
	// is the board's. It is nil where a state has ended by itself, and where the
	// session is no longer known.
	By   event.Event
	Gone bool // the session is no longer known; State is what such a one shows
}

// Follow returns a follower that begins with the states as they are now.
func (b *Board) Follow(now time.Time) *Follower {
	f := &Follower{board: b, due: map[string]time.Time{}}
	f.copy()
	for _, s := range f.states.bySession {
		f.await(s.State, now)
	}
	return f
}

func (f *Follower) copy() {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	f.states = f.board.states
	f.states.bySession, f.states.gone = maps.Clone(f.board.states.bySession), nil
}

// States returns the states at the event that was taken last, in a fixed order.
func (f *Follower) States() []State { return f.states.all() }

// Robot returns the state of a robot: that of its latest session.
func (f *Follower) Robot(id device.ID) State { return f.states.robot(id) }

// Seq is the number of the event that was taken last.
func (f *Follower) Seq() uint64 { return f.states.seq }

// Reader returns a reader of the events that come after.
func (f *Follower) Reader(bus *event.Bus) *event.Reader { return bus.ReadFrom(f.states.seq + 1) }

// Take folds an event and returns the states that it changes, in order: the
// session's state where that has ended by itself before, the sessions that are
// no longer known, and the event's own change. After Missed it is every state
// of the board. Of an event that is older than the states it is nothing. The
// result is valid until the next call.
func (f *Follower) Take(e event.Envelope) []Change {
	f.changes = f.changes[:0]
	if _, lost := e.Event.(event.Missed); lost {
		f.reread(e)
		return f.changes
	}
	if e.Seq <= f.states.seq {
		return nil
	}
	f.pass(keyOf(e.Robot, e.Session), e.At)
	key := f.states.take(e)
	for _, s := range f.states.gone {
		f.forget(s, e.At)
	}
	if key != "" {
		f.change(f.states.bySession[key].State, e)
	}
	return f.changes
}

// reread goes on from the board after events were lost.
func (f *Follower) reread(e event.Envelope) {
	before := f.states.all()
	f.copy()
	for _, s := range before {
		if _, known := f.states.bySession[s.Key()]; !known {
			f.forget(s, e.At)
		}
	}
	for _, s := range f.states.all() {
		f.change(s, e)
	}
}

func (f *Follower) forget(s State, at time.Time) {
	delete(f.due, s.Key())
	f.changes = append(f.changes, Change{State: unknown(s.Robot, s.Session), At: at, Gone: true})
}

func (f *Follower) change(s State, e event.Envelope) {
	f.await(s, e.At)
	f.changes = append(f.changes, Change{State: s, At: e.At, By: e.Event})
}

// await notes when a state ends by itself.
func (f *Follower) await(s State, now time.Time) {
	if due := s.Due(); due.After(now) && s.At(due) != s.At(now) {
		f.due[s.Key()] = due
	} else {
		delete(f.due, s.Key())
	}
}

// Due is when a state changes next by itself, and the zero time when none does.
func (f *Follower) Due() (first time.Time) {
	for _, due := range f.due {
		if first.IsZero() || due.Before(first) {
			first = due
		}
	}
	return first
}

// Pass returns the states that have ended by themselves by now. The result is
// valid until the next call.
func (f *Follower) Pass(now time.Time) []Change {
	f.changes = f.changes[:0]
	for key := range f.due {
		f.pass(key, now)
	}
	return f.changes
}

func (f *Follower) pass(key string, now time.Time) {
	if due, waits := f.due[key]; waits && !due.After(now) {
		delete(f.due, key)
		f.changes = append(f.changes, Change{State: f.states.bySession[key].State, At: due})
	}
}
