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

// keepEvery is how often changed states are stored, to spare an SD card.
const keepEvery = 5 * time.Minute

// mostRobots bounds the robots that are kept. Beyond limit.Message bytes of events of
// all of them, a state is stored without its events.
const mostRobots = 1000

// States owns the state of every robot and the Seq it is true at. Feeds, mirror and
// prompt all read it. Any goroutine may call its methods.
type States struct {
	kept table

	keeping sync.Mutex        // held while something is kept or forgotten; taken before mu
	bytes   map[device.ID]int // under keeping: of the events that are kept
	mu      sync.Mutex
	seq     uint64
	states  map[device.ID]State
	dirty   map[device.ID]bool
}

// NewStates returns the states that were stored in a table, marked as stale: what
// has happened since is unknown. With a nil table nothing is stored.
func NewStates(kept table) *States {
	b := &States{kept: kept, bytes: map[device.ID]int{}, states: map[device.ID]State{}, dirty: map[device.ID]bool{}}
	if kept == nil {
		return b
	}
	for key, s := range kept.All() {
		id, err := device.ParseID(key)
		if err != nil || len(b.states) >= mostRobots {
			continue
		}
		s.Robot, s.Stale, s.Online, s.Talking, s.Listening = id, true, false, false, false
		b.states[id], b.bytes[id] = s.forget(), s.size()
	}
	return b
}

// Run folds and stores what the bus carries, until ctx or the bus ends.
func (b *States) Run(ctx context.Context, r *event.Reader) {
	ctx, cancel := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { b.keepOn(ctx) })
	r.Each(ctx, b.Take)
	cancel()
	keeper.Wait()
}

// keepOn keeps what has changed from time to time, and at the end.
func (b *States) keepOn(ctx context.Context) {
	t := time.NewTicker(keepEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			b.Flush()
		case <-ctx.Done():
			b.Flush()
			return
		}
	}
}

// Flush keeps what has changed.
func (b *States) Flush() {
	b.keeping.Lock()
	defer b.keeping.Unlock()
	b.mu.Lock()
	var changed []State
	for id := range b.dirty {
		changed = append(changed, b.states[id])
	}
	clear(b.dirty)
	b.mu.Unlock()
	if b.kept == nil {
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
		b.kept.PutSoon(string(s.Robot), s)
	}
}

// Take folds one event.
func (b *States) Take(e event.Envelope) {
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
		return // its owner has forgotten it
	}
	if e.Robot == "" || !known && len(b.states) >= mostRobots && !b.makeRoom() {
		return
	}
	b.states[e.Robot] = Fold(before, e)
	if _, sensed := e.Event.(event.Perceived); sensed {
		b.dirty[e.Robot] = true
	}
}

// makeRoom drops a robot that has sensed nothing yet. b.mu is held.
func (b *States) makeRoom() bool {
	for id, s := range b.states {
		if s.Sensed.IsZero() {
			b.drop(id)
			return true
		}
	}
	return false
}

// drop must be called with b.mu held.
func (b *States) drop(id device.ID) {
	delete(b.states, id)
	delete(b.dirty, id)
}

// Snapshot returns what is known of every robot at that time, by robot, and
// the Seq it is true at: a reader goes on with the bus from Seq + 1.
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

// Robot returns what is known of a robot at that time.
func (b *States) Robot(id device.ID, now time.Time) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.states[id]
	s.Robot = id
	return s.At(now)
}

// Who returns the name of the person before a robot; empty is nobody who is known.
func (b *States) Who(id device.ID, now time.Time) string { return b.Robot(id, now).Who(now) }

// Senses returns what a robot notices, in words.
func (b *States) Senses(id device.ID, now time.Time) []string { return b.Robot(id, now).Senses(now) }

// Perception returns what an agent may know of a robot's senses: its state with the latest ten
// events.
func (b *States) Perception(id device.ID, now time.Time) any {
	const latest = 10
	s := b.Robot(id, now)
	s.Recent = s.Recent[max(0, len(s.Recent)-latest):]
	return s
}

// Known lists the robots that anything is known of.
func (b *States) Known() []device.ID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.states))
}

// Forget drops what is known of a robot.
func (b *States) Forget(id device.ID) {
	b.keeping.Lock()
	defer b.keeping.Unlock()
	delete(b.bytes, id)
	b.mu.Lock()
	b.drop(id)
	b.mu.Unlock()
	if b.kept != nil {
		b.kept.DeleteSoon(string(id))
	}
}
