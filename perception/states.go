package perception

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/device"
	"perch/event"
	"perch/store"
)

// storeInterval is the interval between two writes of the changed states. It is long
// because frequent writes wear out an SD card.
const storeInterval = 5 * time.Minute

// States holds the state of every robot. Feeds, the Home Assistant mirror and the agent's
// prompt read it. It is safe for concurrent use.
type States struct {
	table store.Records[State] // by robot ID; a power cut may lose the latest writes

	mu     sync.Mutex // guards the fields below
	seq    uint64     // sequence number of the last event
	states map[device.ID]State
	dirty  map[device.ID]bool // robots with a state that has changed since it was stored
}

// NewStates returns the states stored in t. They are marked as stale, because the events
// since they were stored are unknown.
func NewStates(t store.Records[State]) *States {
	b := &States{table: t, states: map[device.ID]State{}, dirty: map[device.ID]bool{}}
	for key, s := range t.All() {
		s.Robot, s.Stale, s.Online, s.Talking, s.Listening = device.ID(key), true, false, false, false
		b.states[s.Robot] = s.forgetSurroundings()
	}
	return b
}

// Run applies the events of r and stores the states, until ctx ends or the bus is closed.
func (b *States) Run(ctx context.Context, r *event.Reader) {
	ctx, cancel := context.WithCancel(ctx)
	var flusher sync.WaitGroup
	flusher.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-time.After(storeInterval):
			case <-ctx.Done():
			}
			b.Flush()
		}
	})
	r.Each(ctx, b.HandleEvent)
	cancel()
	flusher.Wait()
}

// Flush stores the changed states.
func (b *States) Flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.dirty {
		b.table.PutSoon(string(id), b.states[id])
	}
	clear(b.dirty)
}

// HandleEvent applies one event to the state of its robot.
func (b *States) HandleEvent(e event.Envelope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seq = e.Seq
	if _, missed := e.Event.(event.Missed); missed {
		for id, s := range b.states {
			b.states[id] = Fold(s, e)
		}
		return
	}
	if _, forgotten := e.Event.(event.RobotForgotten); forgotten {
		b.drop(e.Robot)
		return
	}
	before, hasState := b.states[e.Robot]
	if !hasState && !startsState(e) {
		return
	}
	b.states[e.Robot] = Fold(before, e)
	if _, sensed := e.Event.(event.Perceived); sensed {
		b.dirty[e.Robot] = true
	}
}

// startsState reports whether an event may be the first of a robot's state. A check-in may
// come from a stranger, and the end of a connection from a robot that the owner has removed.
func startsState(e event.Envelope) bool {
	switch e.Event.(type) {
	case event.RobotSeen, event.RobotDisconnected:
		return false
	}
	return e.Robot != ""
}

// drop removes a robot's state. The caller holds b.mu.
func (b *States) drop(id device.ID) {
	delete(b.states, id)
	delete(b.dirty, id)
}

// Snapshot returns the states of all robots at the time now, sorted by robot ID, and the
// sequence number of the last applied event. Reading the bus from seq+1 misses nothing.
func (b *States) Snapshot(now time.Time) (states []State, seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	states = make([]State, 0, len(b.states))
	for _, s := range b.states {
		states = append(states, s.At(now))
	}
	slices.SortFunc(states, func(a, b State) int { return strings.Compare(string(a.Robot), string(b.Robot)) })
	return states, b.seq
}

// Robot returns the state of a robot at the time now.
func (b *States) Robot(id device.ID, now time.Time) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.states[id]
	s.Robot = id
	return s.At(now)
}

// Who describes the person in front of a robot, see State.Who.
func (b *States) Who(id device.ID, now time.Time) string { return b.Robot(id, now).Who(now) }

// Senses describes a robot's present perceptions in words, see State.Senses.
func (b *States) Senses(id device.ID, now time.Time) []string { return b.Robot(id, now).Senses(now) }

// Perception returns a robot's state for an agent, with only the latest ten events.
func (b *States) Perception(id device.ID, now time.Time) any {
	const maxEvents = 10
	s := b.Robot(id, now)
	s.Recent = s.Recent[max(0, len(s.Recent)-maxEvents):]
	return s
}

// Robots returns the robots that have a state, in no particular order.
func (b *States) Robots() []device.ID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.states))
}

// Forget deletes the state of a robot, also from the table.
func (b *States) Forget(id device.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(id)
	b.table.DeleteSoon(string(id))
}
