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

// table stores the states by robot; a power cut may lose the latest.
type table interface {
	PutSoon(key string, s State)
	DeleteSoon(key string)
	All() iter.Seq2[string, State]
}

// storeEvery is how often changed states are stored, to spare an SD card.
const storeEvery = 5 * time.Minute

// mostRobots bounds the stored robots. If the events of all robots exceed limit.Message
// bytes, a state is stored without its events.
const mostRobots = 1000

// States owns the state of every robot and the Seq of its last event. Feeds, mirror and
// prompt all read it. It is safe for concurrent use.
type States struct {
	table table

	storing sync.Mutex        // held while states are stored or dropped; acquired before mu
	bytes   map[device.ID]int // size of the stored events; guarded by storing
	mu      sync.Mutex
	seq     uint64
	states  map[device.ID]State
	dirty   map[device.ID]bool
}

// NewStates returns the states stored in a table, marked as stale, because later events
// are unknown. With a nil table nothing is stored.
func NewStates(stored table) *States {
	b := &States{table: stored, bytes: map[device.ID]int{}, states: map[device.ID]State{}, dirty: map[device.ID]bool{}}
	if stored == nil {
		return b
	}
	for key, s := range stored.All() {
		id, err := device.ParseID(key)
		if err != nil || len(b.states) >= mostRobots {
			continue
		}
		s.Robot, s.Stale, s.Online, s.Talking, s.Listening = id, true, false, false, false
		b.states[id], b.bytes[id] = s.forget(), s.size()
	}
	return b
}

// Run applies and stores the events of the bus, until ctx or the bus ends.
func (b *States) Run(ctx context.Context, r *event.Reader) {
	ctx, cancel := context.WithCancel(ctx)
	var flusher sync.WaitGroup
	flusher.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-time.After(storeEvery):
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
		before, all := b.bytes[s.Robot], 0
		for _, n := range b.bytes {
			all += n
		}
		if b.bytes[s.Robot] = s.size(); all-before+s.size() > limit.Message {
			s.Recent, b.bytes[s.Robot] = nil, 0
		}
		b.table.PutSoon(string(s.Robot), s)
	}
}

// HandleEvent folds one event.
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
	if _, gone := e.Event.(event.RobotForgotten); gone {
		b.drop(e.Robot)
		return
	}
	before, known := b.states[e.Robot]
	if _, gone := e.Event.(event.RobotDisconnected); gone && !known {
		return // its owner has removed it
	}
	if e.Robot == "" || !known && len(b.states) >= mostRobots && !b.makeRoom() {
		return
	}
	b.states[e.Robot] = Fold(before, e)
	if _, sensed := e.Event.(event.Perceived); sensed {
		b.dirty[e.Robot] = true
	}
}

// makeRoom drops a robot that has not sensed anything yet. The caller holds b.mu.
func (b *States) makeRoom() bool {
	for id, s := range b.states {
		if s.Sensed.IsZero() {
			b.drop(id)
			return true
		}
	}
	return false
}

// drop removes a robot. The caller holds b.mu.
func (b *States) drop(id device.ID) {
	delete(b.states, id)
	delete(b.dirty, id)
}

// Snapshot returns the states of all robots at that time, by robot, and the Seq of the
// last event: a reader continues with the bus from Seq + 1.
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

// Robot returns the state of a robot at that time.
func (b *States) Robot(id device.ID, now time.Time) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.states[id]
	s.Robot = id
	return s.At(now)
}

// Who returns the name of the person in front of a robot, or "" if unknown.
func (b *States) Who(id device.ID, now time.Time) string { return b.Robot(id, now).Who(now) }

// Senses returns what a robot notices, in words.
func (b *States) Senses(id device.ID, now time.Time) []string { return b.Robot(id, now).Senses(now) }

// Perception returns a robot's state for an agent, with only the latest ten events.
func (b *States) Perception(id device.ID, now time.Time) any {
	const latest = 10
	s := b.Robot(id, now)
	s.Recent = s.Recent[max(0, len(s.Recent)-latest):]
	return s
}

// Robots lists the robots with a state.
func (b *States) Robots() []device.ID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.states))
}

// Forget drops the state of a robot.
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
