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
	states map[string]stated
	swept  time.Time
}

// stated is a state, and when its session was last heard of.
type stated struct {
	State
	at time.Time
}

// NewBoard returns an empty board.
func NewBoard() *Board { return &Board{states: map[string]stated{}} }

// mostStates bounds the sessions that are remembered. From manyStates on, those
// of no robot are forgotten once they are over. Robots are forgotten a week after
// their channel closed, and then show what those do of which nothing is known;
// sessions of no robot after a day without a word.
const (
	mostStates   = 2000
	manyStates   = 100
	goneFor      = 7 * 24 * time.Hour
	silentFor    = 24 * time.Hour
	betweenLooks = time.Minute
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
	if _, gone := e.Event.(event.RobotForgotten); gone {
		delete(b.states, key)
		return
	}
	if key == "" || e.Session == "" {
		return // of no session: nothing that shows
	}
	if _, told := e.Event.(event.Notification); told {
		return // its session is whoever asked for it to be told, known or not
	}
	if e.At.Sub(b.swept) >= betweenLooks {
		b.swept = e.At
		b.forget(e.At)
	}
	before, known := b.states[key]
	if !known && len(b.states) >= manyStates {
		b.makeRoom(e.At)
	}
	if !known && len(b.states) >= mostStates {
		b.dropLongestGone()
	}
	if known || len(b.states) < mostStates {
		b.states[key] = stated{Fold(before.State, e), e.At}
	}
}

// forget gives up those that are gone for good, as far as can be told.
func (b *Board) forget(now time.Time) {
	for key, s := range b.states {
		silent := now.Sub(s.at)
		if s.Robot == "" && silent >= silentFor || s.Robot != "" && !s.Online && silent >= goneFor {
			delete(b.states, key)
		}
	}
}

// dropLongestGone makes room where there is none. Who is here stays.
func (b *Board) dropLongestGone() {
	longest := ""
	for key, s := range b.states {
		if s.Robot != "" && !s.Online && (longest == "" || s.at.Before(b.states[longest].at)) {
			longest = key
		}
	}
	delete(b.states, longest)
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
		states = append(states, s.State)
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
	return s.State
}
