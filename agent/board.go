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

// Board holds the current state of each robot, which is the state of the robot's latest session, and
// of each session without a robot. It derives the states from the events of the bus. The feeds of
// skins, MQTT and the owner's page read the states through Followers, so they all show the same.
type Board struct {
	mu     sync.Mutex
	states states
}

// ChatPrefix begins the session ID of each text chat. The session IDs of robots do not begin with
// ChatPrefix. If the text chat is with a robot, the robot's ID follows the prefix.
const ChatPrefix = "vtb_"

// NewBoard returns an empty board.
func NewBoard() *Board { return &Board{states: states{bySession: map[string]timedState{}}} }

// Run applies the events that r reads, until ctx ends or the bus is closed.
func (b *Board) Run(ctx context.Context, r *event.Reader) {
	r.Each(ctx, b.HandleEvent)
}

// HandleEvent updates the states after an event.
func (b *Board) HandleEvent(e event.Envelope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.states.apply(e)
}

// Snapshot returns all states, sorted by robot and session, and the sequence number of the
// latest event in them. A reader that continues with event seq+1 misses no event.
func (b *Board) Snapshot() (all []State, seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.states.all(), b.states.seq
}

// Robot returns the state of the latest session of a robot. For a robot without a state it
// returns an offline, idle and neutral state.
func (b *Board) Robot(id device.ID) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.states.robot(id)
}

// states holds the states of all sessions.
type states struct {
	seq       uint64                // sequence number of the latest event
	bySession map[string]timedState // key: State.Key
	swept     time.Time             // when outdated states were last removed
	removed   []State               // states that the latest event has removed
}

// timedState is a state with the time of its latest event. A mood does not change this time.
type timedState struct {
	State
	at time.Time
}

// Limits of the stored states.
const (
	maxStates      = 2000
	maxIdle        = 100                // if there are this many states, all idle sessions without a robot are removed before another state is added
	offlineExpiry  = 7 * 24 * time.Hour // an offline robot is removed if its latest event is this old
	inactiveExpiry = 24 * time.Hour     // a session without a robot is removed if its latest event is this old
	sweepInterval  = time.Minute        // time between removals of outdated states
)

// apply updates the states after an event. It returns the key of the state that the event
// may have visibly changed, or "".
func (s *states) apply(e event.Envelope) (key string) {
	key = keyOf(e.Robot, e.Session)
	s.seq, s.removed = e.Seq, s.removed[:0]
	if _, ok := e.Event.(event.RobotForgotten); ok {
		s.remove(key)
		return ""
	}
	_, isMood := e.Event.(event.Mood)
	if state, ok := s.bySession[key]; isMood && (ok || e.Robot == "") {
		if ok {
			s.bySession[key] = timedState{Fold(state.State, e), state.at}
		}
		return "" // a mood does not change what is shown, and does not keep the state from being removed
	}
	if key == "" || !isMood && isConnectionEvent(e.Event) != (e.Session == "") {
		return "" // neither about a session nor about a robot's connection
	}
	if _, ok := e.Event.(event.Notification); ok {
		return "" // the session ID is the sender's choice, and the session may not exist
	}
	if e.At.Sub(s.swept) >= sweepInterval {
		s.swept = e.At
		s.removeFunc(func(state timedState) bool { return state.isOutdated(e.At) })
	}
	before, ok := s.bySession[key]
	if _, disconnected := e.Event.(event.RobotDisconnected); disconnected && !ok {
		return "" // the robot was removed, or its state was not stored
	}
	if !ok && len(s.bySession) >= maxIdle {
		s.removeFunc(func(state timedState) bool { return state.Robot == "" && state.At(e.At) == Idle })
	}
	if !ok && len(s.bySession) >= maxStates {
		if first := limit.First(s.bySession, timedState.compare); s.bySession[first].isEvictable() {
			s.remove(first)
		}
	}
	if !ok && len(s.bySession) >= maxStates {
		return ""
	}
	s.bySession[key] = timedState{Fold(before.State, e), e.At}
	if isMood {
		return "" // a mood does not change what is shown
	}
	return key
}

// isConnectionEvent reports whether an event is about the MQTT connection of a robot, and
// therefore has no session.
func isConnectionEvent(e event.Event) bool {
	switch e.(type) {
	case event.RobotConnected, event.RobotDisconnected:
		return true
	}
	return false
}

// remove removes the state with this key, if there is one.
func (s *states) remove(key string) {
	if state, ok := s.bySession[key]; ok {
		s.removed = append(s.removed, state.State)
		delete(s.bySession, key)
	}
}

// removeFunc removes the states where cond is true.
func (s *states) removeFunc(cond func(timedState) bool) {
	for key, state := range s.bySession {
		if cond(state) {
			s.remove(key)
		}
	}
}

// isOutdated reports whether the state can be removed: its latest event is too old, and it
// belongs to an offline robot or to no robot.
func (s timedState) isOutdated(now time.Time) bool {
	age := now.Sub(s.at)
	return s.Robot == "" && age >= inactiveExpiry || s.isEvictable() && age >= offlineExpiry
}

// isEvictable reports whether the state may be removed to make room: its robot is offline.
func (s timedState) isEvictable() bool { return s.Robot != "" && !s.Online }

// compare orders states for eviction: evictable states come first, and among equals the
// state with the oldest event.
func (s timedState) compare(other timedState) int {
	switch {
	case s.isEvictable() == other.isEvictable():
		return s.at.Compare(other.at)
	case s.isEvictable():
		return -1
	}
	return 1
}

// all returns all states, sorted by robot and session.
func (s *states) all() (all []State) {
	for _, state := range s.bySession {
		all = append(all, state.State)
	}
	slices.SortFunc(all, func(a, b State) int { return cmp.Or(cmp.Compare(a.Robot, b.Robot), cmp.Compare(a.Session, b.Session)) })
	return all
}

// robot returns the state of the latest session of a robot, or newState.
func (s *states) robot(id device.ID) State {
	if state, ok := s.bySession[string(id)]; ok {
		return state.State
	}
	return newState(id, "")
}

// newState returns the state of a robot or session before its first event.
func newState(id device.ID, session string) State {
	return State{Robot: id, Session: session, Emotion: Neutral, base: Idle}
}

// Follower follows the states of a board. It starts with a snapshot, and HandleEvent
// returns the changes that each event causes. Some states, such as Attention, end at a
// certain time instead of by an event; Expire returns such changes. The states of a
// Follower are the states after the latest event that the Follower has handled; the board
// may have handled more events, or fewer. A Follower is not safe for concurrent use.
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
	due     map[string]time.Time // key: State.Key; value: when the state expires
	changes []Change             // the latest result, whose memory is reused
}

// Change is a change of a session's state.
type Change struct {
	State State
	At    time.Time // when the state changed
	// By is the event that caused the change. It is event.Missed for states that were read
	// from the board again after events were lost, and nil if a state has expired or was
	// removed.
	By   event.Event
	Gone bool // whether the state was removed; State is then the state before the first event
}

// NewFollower returns a follower that starts with the current states.
func (b *Board) NewFollower(now time.Time) *Follower {
	f := &Follower{board: b, due: map[string]time.Time{}}
	f.copyStates()
	for _, s := range f.states.bySession {
		f.schedule(s.State, now)
	}
	return f
}

func (f *Follower) copyStates() {
	f.board.mu.Lock()
	defer f.board.mu.Unlock()
	f.states = f.board.states
	f.states.bySession, f.states.removed = maps.Clone(f.board.states.bySession), nil
}

// States returns all states, sorted by robot and session.
func (f *Follower) States() []State { return f.states.all() }

// Robot returns the state of the latest session of a robot, like Board.Robot.
func (f *Follower) Robot(id device.ID) State { return f.states.robot(id) }

// Seq returns the sequence number of the latest event that was handled.
func (f *Follower) Seq() uint64 { return f.states.seq }

// Reader returns a reader of the events after Seq.
func (f *Follower) Reader(bus *event.Bus) *event.Reader { return bus.ReadFrom(f.states.seq + 1) }

// HandleEvent handles an event and returns the changes that the event causes, in this order:
// the expiry of the session's previous state, removed states, and the new state of the
// session. For event.Mood the result has no new state. For event.Missed, HandleEvent returns
// the removal of each state that the board no longer has, and then all states of the board. It
// ignores all other events up to Seq. The result is valid until the next call of HandleEvent or
// Expire.
func (f *Follower) HandleEvent(e event.Envelope) []Change {
	f.changes = f.changes[:0]
	if _, ok := e.Event.(event.Missed); ok {
		f.reread(e)
		return f.changes
	}
	if e.Seq <= f.states.seq {
		return nil
	}
	f.expireState(keyOf(e.Robot, e.Session), e.At)
	key := f.states.apply(e)
	for _, s := range f.states.removed {
		f.addRemoval(s, e.At)
	}
	if key != "" {
		f.addChange(f.states.bySession[key].State, e)
	}
	return f.changes
}

// reread copies the states of the board after events were lost, and adds removed states and
// all current states to f.changes.
func (f *Follower) reread(e event.Envelope) {
	before := f.states.all()
	f.copyStates()
	for _, s := range before {
		if _, ok := f.states.bySession[s.Key()]; !ok {
			f.addRemoval(s, e.At)
		}
	}
	for _, s := range f.states.all() {
		f.addChange(s, e)
	}
}

// addRemoval adds the removal of the state s to f.changes.
func (f *Follower) addRemoval(s State, at time.Time) {
	delete(f.due, s.Key())
	f.changes = append(f.changes, Change{State: newState(s.Robot, s.Session), At: at, Gone: true})
}

// addChange adds the new state s, caused by e, to f.changes.
func (f *Follower) addChange(s State, e event.Envelope) {
	f.schedule(s, e.At)
	f.changes = append(f.changes, Change{State: s, At: e.At, By: e.Event})
}

// schedule sets when the state s expires, if the expiry changes what is shown.
func (f *Follower) schedule(s State, now time.Time) {
	if due := s.ExpiresAt(); due.After(now) && s.At(due) != s.At(now) {
		f.due[s.Key()] = due
	} else {
		delete(f.due, s.Key())
	}
}

// NextExpiry returns when the next state expires, or the zero time if no state expires.
func (f *Follower) NextExpiry() time.Time {
	return f.due[limit.First(f.due, time.Time.Compare)]
}

// Expire returns a change for each state that has expired by now, unless HandleEvent or Expire
// has already returned the change. The result is valid until the next call.
func (f *Follower) Expire(now time.Time) []Change {
	f.changes = f.changes[:0]
	for key := range f.due {
		f.expireState(key, now)
	}
	return f.changes
}

// expireState adds a change to f.changes if the state with this key has expired.
func (f *Follower) expireState(key string, now time.Time) {
	if due, ok := f.due[key]; ok && !due.After(now) {
		delete(f.due, key)
		f.changes = append(f.changes, Change{State: f.states.bySession[key].State, At: due})
	}
}
