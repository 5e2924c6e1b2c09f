package agent

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"perch/device"
	"perch/event"
)

// Board owns the state of every session and the Seq it is true at. The feeds
// of skins, MQTT and recordings follow it (see Follower) and fold nothing
// themselves, so they cannot disagree.
type Board struct {
	mu     sync.Mutex
	states states
}

// NewBoard returns an empty board.
func NewBoard() *Board { return &Board{states: states{bySession: map[string]stated{}}} }

// Run folds what the bus carries until ctx ends or the bus is closed.
func (b *Board) Run(ctx context.Context, r *event.Reader) {
	r.Each(ctx, b.Take)
}

// Take folds one event.
func (b *Board) Take(e event.Envelope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.states.take(e)
}

// Snapshot returns every state, in a fixed order, and the Seq they are true
// at: a reader goes on with the bus from Seq + 1 and sees neither a gap nor
// an old value after a new one.
func (b *Board) Snapshot() (all []State, seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.states.all(), b.states.seq
}

// Robot returns the state of a robot: that of its latest session.
func (b *Board) Robot(id device.ID) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.states.robot(id)
}

// states are those of all sessions, by State.Key, and the rules by which
// events change them.
type states struct {
	seq       uint64
	bySession map[string]stated
	swept     time.Time
	gone      []State // dropped by the latest event
}

// stated is a state, and the time of its session's latest event.
type stated struct {
	State
	at time.Time
}

// mostStates bounds the sessions that are remembered. From manyStates on,
// sessions without a robot are forgotten once they are over. A robot is forgotten
// a week after its channel closed, and then shows what an unknown robot shows; a
// session without a robot after a day without an event.
const (
	mostStates   = 2000
	manyStates   = 100
	goneFor      = 7 * 24 * time.Hour
	silentFor    = 24 * time.Hour
	betweenLooks = time.Minute
)

// take folds one event. It returns the key of the session that the event
// changed, and "" where it changed none.
func (s *states) take(e event.Envelope) (key string) {
	key = keyOf(e.Robot, e.Session)
	s.seq, s.gone = e.Seq, s.gone[:0]
	if _, gone := e.Event.(event.RobotForgotten); gone {
		s.drop(key)
		return ""
	}
	if key == "" || e.Session == "" {
		return "" // of no session: nothing that shows
	}
	if _, is := e.Event.(event.Notification); is {
		return "" // its session is the one that sent it, which may be unknown
	}
	if e.At.Sub(s.swept) >= betweenLooks {
		s.swept = e.At
		s.forget(e.At)
	}
	before, known := s.bySession[key]
	if !known && len(s.bySession) >= manyStates {
		s.makeRoom(e.At)
	}
	if !known && len(s.bySession) >= mostStates {
		s.dropLongestGone()
	}
	if !known && len(s.bySession) >= mostStates {
		return ""
	}
	s.bySession[key] = stated{Fold(before.State, e), e.At}
	return key
}

func (s *states) drop(key string) {
	if one, known := s.bySession[key]; known {
		s.gone = append(s.gone, one.State)
		delete(s.bySession, key)
	}
}

// forget drops the sessions that are gone for good, as far as can be known.
func (s *states) forget(now time.Time) {
	for key, one := range s.bySession {
		silent := now.Sub(one.at)
		if one.Robot == "" && silent >= silentFor || one.Robot != "" && !one.Online && silent >= goneFor {
			s.drop(key)
		}
	}
}

// dropLongestGone makes room where there is none. A robot that is online stays.
func (s *states) dropLongestGone() {
	longest := ""
	for key, one := range s.bySession {
		if one.Robot != "" && !one.Online && (longest == "" || one.at.Before(s.bySession[longest].at)) {
			longest = key
		}
	}
	s.drop(longest)
}

// makeRoom drops the sessions without a robot that are over.
func (s *states) makeRoom(now time.Time) {
	for key, one := range s.bySession {
		if one.Robot == "" && one.At(now) == Idle {
			s.drop(key)
		}
	}
}

// all returns every state, in a fixed order.
func (s *states) all() (all []State) {
	for _, one := range s.bySession {
		all = append(all, one.State)
	}
	slices.SortFunc(all, func(a, b State) int { return cmp.Or(cmp.Compare(a.Robot, b.Robot), cmp.Compare(a.Session, b.Session)) })
	return all
}

func (s *states) robot(id device.ID) State {
	if one, known := s.bySession[string(id)]; known {
		return one.State
	}
	return unknown(id, "")
}

// unknown is what a robot or a session shows of which nothing is known.
func unknown(id device.ID, session string) State {
	return State{Robot: id, Session: session, Emotion: Neutral, base: Idle}
}
