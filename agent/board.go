package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/device"
	"perch/event"
)

// Board owns the state of every session and the Seq it is true at. The feeds
// of skins, MQTT and the dashboard are renderings of one board, so they
// cannot disagree.
type Board struct {
	mu     sync.Mutex
	seq    uint64
	states map[string]State
}

// NewBoard returns an empty board.
func NewBoard() *Board { return &Board{states: map[string]State{}} }

// mostStates bounds the sessions that are remembered. From manyStates on, those
// of no robot are forgotten once they are over.
const (
	mostStates = 2000
	manyStates = 100
)

// Run folds what the bus carries until ctx ends or the bus is closed.
func (b *Board) Run(ctx context.Context, r *event.Reader) {
	r.Each(ctx, b.Take)
}

// Take folds one event.
func (b *Board) Take(e event.Envelope) {
	key := string(e.Robot)
	if key == "" {
		key = e.Session
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seq = e.Seq
	if key == "" || e.Session == "" {
		return // of no session: nothing that shows
	}
	if _, told := e.Event.(event.Notification); told {
		return // its session is whoever asked for it to be told, known or not
	}
	before, known := b.states[key]
	if !known && len(b.states) >= manyStates {
		b.makeRoom(e.At)
	}
	if known || len(b.states) < mostStates {
		b.states[key] = Fold(before, e)
	}
}

// makeRoom gives up the sessions of no robot that are over.
func (b *Board) makeRoom(now time.Time) {
	for key, s := range b.states {
		if s.Robot == "" && s.At(now) == Idle {
			delete(b.states, key)
		}
	}
}

// Snapshot returns every state, in a fixed order, and the Seq they are true
// at: a reader goes on with the bus from Seq + 1 and sees neither a gap nor
// an old value after a new one.
func (b *Board) Snapshot() (states []State, seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.states {
		states = append(states, s)
	}
	slices.SortFunc(states, func(a, b State) int {
		if c := strings.Compare(string(a.Robot), string(b.Robot)); c != 0 {
			return c
		}
		return strings.Compare(a.Session, b.Session)
	})
	return states, b.seq
}

// Robot returns the state of a robot: that of its latest session.
func (b *Board) Robot(id device.ID) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, known := b.states[string(id)]
	if !known {
		return State{Robot: id, Emotion: Neutral, base: Idle}
	}
	return s
}
