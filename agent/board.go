package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"perch/device"
	"perch/event"
	"perch/limit"
)

// Board owns the state of every session and the Seq it is true at. The feeds
// of skins, MQTT and recordings follow it (see Follower) and fold nothing
// themselves, so they cannot disagree.
type Board struct {
	mu     sync.Mutex
	states states
}

// OfChat begins the id of every session of a chat without a microphone, so
// that it cannot pass for a robot's. A chat with a robot appends the robot's id.
const OfChat = "vtb_"

// NewBoard returns an empty board.
func NewBoard() *Board { return &Board{states: states{bySession: map[string]stated{}}} }

// Run applies the events of r until ctx ends or the bus is closed.
func (b *Board) Run(ctx context.Context, r *event.Reader) {
	r.Each(ctx, b.HandleEvent)
}

// HandleEvent folds one event into the states.
func (b *Board) HandleEvent(e event.Envelope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.states.fold(e)
}

// Snapshot returns every state, in a fixed order, and the Seq they are true
// at: a reader goes on with the bus from Seq + 1 and sees neither a gap nor
// an old value after a new one.
func (b *Board) Snapshot() (all []State, seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.states.all(), b.states.seq
}

// Robot returns the state of a robot's latest session.
func (b *Board) Robot(id device.ID) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.states.robot(id)
}

// states holds all sessions by State.Key, and the rules that change them.
type states struct {
	seq       uint64
	bySession map[string]stated
	swept     time.Time
	gone      []State // dropped by the latest event
}

// stated is a state with the time of its session's latest event.
type stated struct {
	State
	at time.Time
}

// Bounds of the remembered sessions. From manyStates on, finished sessions without
// a robot are dropped. A robot is dropped a week after its channel closed, and is
// then unknown; a session without a robot after a day without an event.
const (
	mostStates = 2000
	manyStates = 100
	goneFor    = 7 * 24 * time.Hour
	silentFor  = 24 * time.Hour
	sweepEvery = time.Minute
)

// fold folds one event. It returns the changed session's key, or "" if nothing changed.
func (s *states) fold(e event.Envelope) (key string) {
	key = keyOf(e.Robot, e.Session)
	s.seq, s.gone = e.Seq, s.gone[:0]
	if _, gone := e.Event.(event.RobotForgotten); gone {
		s.drop(key)
		return ""
	}
	_, feels := e.Event.(event.Mood)
	if one, known := s.bySession[key]; feels && (known || e.Robot == "") {
		if known {
			s.bySession[key] = stated{Fold(one.State, e), one.at}
		}
		return "" // the visible state and its age stay
	}
	if key == "" || !feels && presence(e.Event) != (e.Session == "") {
		return "" // about no session and no robot's connection: nothing visible
	}
	if _, is := e.Event.(event.Notification); is {
		return "" // it carries the sender's session, which may be unknown
	}
	if e.At.Sub(s.swept) >= sweepEvery {
		s.swept = e.At
		s.dropWhere(func(one stated) bool { return one.outdated(e.At) })
	}
	before, known := s.bySession[key]
	if _, gone := e.Event.(event.RobotDisconnected); gone && !known {
		return "" // its owner has forgotten it
	}
	if !known && len(s.bySession) >= manyStates {
		s.dropWhere(func(one stated) bool { return one.Robot == "" && one.At(e.At) == Idle })
	}
	if !known && len(s.bySession) >= mostStates {
		if first := limit.First(s.bySession, stated.compare); s.bySession[first].evictable() {
			s.drop(first)
		}
	}
	if !known && len(s.bySession) >= mostStates {
		return ""
	}
	s.bySession[key] = stated{Fold(before.State, e), e.At}
	if feels {
		return "" // a first mood does not change what is visible
	}
	return key
}

// presence reports whether an event is about a robot's connection rather than a session.
func presence(e event.Event) bool {
	switch e.(type) {
	case event.RobotConnected, event.RobotDisconnected:
		return true
	}
	return false
}

func (s *states) drop(key string) {
	if one, known := s.bySession[key]; known {
		s.gone = append(s.gone, one.State)
		delete(s.bySession, key)
	}
}

func (s *states) dropWhere(is func(stated) bool) {
	for key, one := range s.bySession {
		if is(one) {
			s.drop(key)
		}
	}
}

// outdated reports whether a session has been offline or silent for too long.
func (s stated) outdated(now time.Time) bool {
	silent := now.Sub(s.at)
	return s.Robot == "" && silent >= silentFor || s.evictable() && silent >= goneFor
}

// evictable reports whether a state may give way to a new one: it is of a robot that is offline.
func (s stated) evictable() bool { return s.Robot != "" && !s.Online }

// compare is negative if a state gives way before another: the robot that is offline for longest.
func (s stated) compare(other stated) int {
	switch {
	case s.evictable() == other.evictable():
		return s.at.Compare(other.at)
	case s.evictable():
		return -1
	}
	return 1
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

// unknown returns the state of a robot or session without any event.
func unknown(id device.ID, session string) State {
	return State{Robot: id, Session: session, Emotion: Neutral, base: Idle}
}

// Follower is one reader of a board: it starts with a snapshot and returns, for each
// event, the states that it changes, folded by the board's own rules. Its states are
// as of the last applied event; the board may be ahead or behind. A Follower is not
// safe for concurrent use.
//
//	f := board.NewFollower(time.Now())
//	// show f.States()
//	f.Reader(bus).Each(ctx, func(e event.Envelope) {
//		for _, c := range f.HandleEvent(e) {
//			// show c.State as it is at c.At
//		}
//	})
type Follower struct {
	board   *Board
	states  states
	due     map[string]time.Time // when a session's state changes by itself
	changes []Change
}

// Change is the new state of a session.
type Change struct {
	State State
	At    time.Time
	// By is the event that changed it: Missed after lost events, when the state comes
	// from the board. It is nil if a state expired or the session is no longer known.
	By   event.Event
	Gone bool // the session is no longer known, and State is as before its first event
}

// NewFollower returns a follower that starts with the present states.
func (b *Board) NewFollower(now time.Time) *Follower {
	f := &Follower{board: b, due: map[string]time.Time{}}
	f.copy()
	for _, s := range f.states.bySession {
		f.schedule(s.State, now)
	}
	return f
}

func (f *Follower) copy() {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	f.states = f.board.states
	f.states.bySession, f.states.gone = maps.Clone(f.board.states.bySession), nil
}

// States returns the states as of the last applied event, in a fixed order.
func (f *Follower) States() []State { return f.states.all() }

// Robot returns the state of a robot's latest session.
func (f *Follower) Robot(id device.ID) State { return f.states.robot(id) }

// Seq returns the number of the last applied event.
func (f *Follower) Seq() uint64 { return f.states.seq }

// Reader returns a reader of the events after Seq.
func (f *Follower) Reader(bus *event.Bus) *event.Reader { return bus.ReadFrom(f.states.seq + 1) }

// HandleEvent folds an event and returns the changes that it causes, in order: the expiry
// of the session's earlier state, sessions that are no longer known, and the event's
// own change. After Missed it returns every state of the board. For an event older
// than the states it returns nothing. The result is valid until the next call.
func (f *Follower) HandleEvent(e event.Envelope) []Change {
	f.changes = f.changes[:0]
	if _, lost := e.Event.(event.Missed); lost {
		f.reread(e)
		return f.changes
	}
	if e.Seq <= f.states.seq {
		return nil
	}
	f.expireOne(keyOf(e.Robot, e.Session), e.At)
	key := f.states.fold(e)
	for _, s := range f.states.gone {
		f.forget(s, e.At)
	}
	if key != "" {
		f.change(f.states.bySession[key].State, e)
	}
	return f.changes
}

// reread copies the board's states after events were lost.
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
	f.schedule(s, e.At)
	f.changes = append(f.changes, Change{State: s, At: e.At, By: e.Event})
}

func (f *Follower) schedule(s State, now time.Time) {
	if due := s.ExpiresAt(); due.After(now) && s.At(due) != s.At(now) {
		f.due[s.Key()] = due
	} else {
		delete(f.due, s.Key())
	}
}

// NextExpiry returns when the next state expires, or the zero time if none does.
func (f *Follower) NextExpiry() time.Time {
	return f.due[limit.First(f.due, time.Time.Compare)]
}

// Expire returns the states that have expired by now. The result is valid until the next call.
func (f *Follower) Expire(now time.Time) []Change {
	f.changes = f.changes[:0]
	for key := range f.due {
		f.expireOne(key, now)
	}
	return f.changes
}

func (f *Follower) expireOne(key string, now time.Time) {
	if due, waits := f.due[key]; waits && !due.After(now) {
		delete(f.due, key)
		f.changes = append(f.changes, Change{State: f.states.bySession[key].State, At: due})
	}
}
