package perception

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/device"
	"perch/event"
	"perch/limit"
)

// table stores states by robot ID. The writes are asynchronous: a power cut may lose the
// latest writes.
type table interface {
	PutSoon(key string, s State)
	DeleteSoon(key string)
	All() iter.Seq2[string, State]
}

// storeInterval is the interval between two writes of the changed states. It is long
// because frequent writes wear out an SD card.
const storeInterval = 5 * time.Minute

// maxRobots is the largest number of robots with a state.
const maxRobots = 1000

// States holds the state of every robot, for feeds, the Home Assistant mirror and the agent's
// prompt. It is safe for concurrent use.
type States struct {
	table table // nil if states are not stored

	storing sync.Mutex        // held by Flush and Forget while they use table; acquired before mu
	bytes   map[device.ID]int // size of the stored events of each robot; guarded by storing

	mu     sync.Mutex // guards the fields below
	seq    uint64     // sequence number of the last event
	states map[device.ID]State
	dirty  map[device.ID]bool // robots with a state that has changed since it was stored
}

// NewStates returns the states stored in t. They are marked as stale, because the events
// since they were stored are unknown. If t is nil, states are not stored.
func NewStates(t table) *States {
	b := &States{table: t, bytes: map[device.ID]int{}, states: map[device.ID]State{}, dirty: map[device.ID]bool{}}
	if t == nil {
		return b
	}
	for key, s := range t.All() {
		id, err := device.ParseID(key)
		if err != nil || len(b.states) >= maxRobots {
			continue
		}
		s.Robot, s.Stale, s.Online, s.Talking, s.Listening = id, true, false, false, false
		b.states[id], b.bytes[id] = s.forgetSurroundings(), s.size()
	}
	return b
}

// Run applies the events of r until ctx ends or the bus is closed. It stores the changed states every
// storeInterval, and at the end.
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

// Flush stores the changed states. If the stored events of all robots would exceed limit.Message
// bytes, a state is stored without its events.
func (b *States) Flush() {
	b.storing.Lock()
	defer b.storing.Unlock()
	b.mu.Lock()
	var changed []State
	for id := range b.dirty {
		changed = append(changed, b.states[id])
	}
	clear(b.dirty)
	b.mu.Unlock()
	if b.table == nil {
		return
	}
	for _, s := range changed {
		before, total := b.bytes[s.Robot], 0
		for _, n := range b.bytes {
			total += n
		}
		if b.bytes[s.Robot] = s.size(); total-before+s.size() > limit.Message {
			s.Recent, b.bytes[s.Robot] = nil, 0
		}
		b.table.PutSoon(string(s.Robot), s)
	}
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
	if !hasState && (!startsState(e) || len(b.states) >= maxRobots && !b.makeRoom()) {
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

// makeRoom drops the state of a robot that has not sensed anything yet, and reports
// whether it has found such a robot. The caller holds b.mu.
func (b *States) makeRoom() bool {
	for id, s := range b.states {
		if s.Sensed.IsZero() {
			b.drop(id)
			return true
		}
	}
	return false
}

// drop removes a robot's state. The caller holds b.mu.
func (b *States) drop(id device.ID) {
	delete(b.states, id)
	delete(b.dirty, id)
}

// Snapshot returns the states of all robots at the time now, sorted by robot ID, and the
// sequence number of the last applied event. A reader of the bus continues at seq+1.
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

// Robot returns the state of a robot at the time now. For an unknown robot the state is empty and
// stale.
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
	b.storing.Lock()
	defer b.storing.Unlock()
	delete(b.bytes, id)
	b.mu.Lock()
	b.drop(id)
	b.mu.Unlock()
	if b.table != nil {
		b.table.DeleteSoon(string(id))
	}
}
