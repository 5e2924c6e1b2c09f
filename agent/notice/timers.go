package notice

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"perch/agent"
	"perch/device"
)

// What a timer may be.
const (
	shortestTimer = time.Second
	mostTimerText = 300 // bytes
	mostTimers    = 20  // of one robot
	undoWithin    = 5 * time.Second
)

// timers is where they are kept; Put and Delete are durable when they return.
type timers interface {
	Put(key string, t agent.Timer) error
	Delete(key string) error
	All() iter.Seq2[string, agent.Timer]
}

// Timers keeps what is to ring, through restarts and through a clock that
// jumps. A Herald rings them. Its methods may be called from any goroutine.
type Timers struct {
	kept    timers
	clock   clock
	changed chan struct{} // there is something new to wait for

	mu      sync.Mutex
	pending map[string]*pending
}

// pending is a timer that has not rung, and what is known of it in this run.
type pending struct {
	agent.Timer
	here bool          // set in this run
	at   time.Duration // on the running clock: it waits no longer than this. Not for a clock time
	rang bool          // but could not be deleted
}

// NewTimers returns the timers kept in a table. Those that are there wait on.
// A nil clock is the machine's.
func NewTimers(kept timers, c clock) *Timers {
	if c == nil {
		c = newMachine()
	}
	s := &Timers{kept: kept, clock: c, changed: make(chan struct{}, 1), pending: map[string]*pending{}}
	running := c.Running()
	for id, t := range kept.All() {
		s.pending[id] = &pending{Timer: t, at: running + t.Length}
	}
	return s
}

// Set keeps a timer durably and returns it with its id: only then may anybody
// say that it is set. Its Length says how long it waits, or, where that is 0,
// its Due when it rings. Where the body has a tool for reminders, the robot
// rings by itself. Set wraps ErrTimer and ErrTooManyTimers, and returns ctx's
// error where that ended first; then nothing was set.
func (s *Timers) Set(ctx context.Context, body agent.Body, t agent.Timer, now time.Time) (agent.Timer, error) {
	began := s.clock.Running()
	t, err := prepareTimer(t, now.Round(0))
	if err != nil {
		return agent.Timer{}, err
	}
	s.mu.Lock()
	err = s.room(t)
	s.mu.Unlock()
	if err != nil {
		return agent.Timer{}, err
	}
	t.RobotID, t.OnRobot = create(ctx, body, t)
	if err = ctx.Err(); err == nil {
		err = s.keep(t, began)
	}
	if err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
		defer cancel()
		if ringing := stop(undo, body, t); ringing != nil {
			err = errors.Join(err, ringing)
		}
		return agent.Timer{}, err
	}
	s.news()
	return t, nil
}

// news wakes the herald.
func (s *Timers) news() {
	select {
	case s.changed <- struct{}{}:
	default: // it has yet to take the last
	}
}

// prepareTimer checks what somebody wants to be told, and when.
func prepareTimer(t agent.Timer, now time.Time) (agent.Timer, error) {
	t.ID, t.Set, t.OnRobot, t.RobotID = cmp.Or(t.ID, rand.Text()[:12]), now, false, ""
	if len(t.Text) > mostTimerText {
		return agent.Timer{}, fmt.Errorf("%w: its text has %d bytes, more than %d", agent.ErrTimer, len(t.Text), mostTimerText)
	}
	if t.Text = agent.Speakable(t.Text); t.Text == "" {
		return agent.Timer{}, fmt.Errorf("%w: it has nothing to say", agent.ErrTimer)
	}
	if len(t.ID) > mostID {
		return agent.Timer{}, fmt.Errorf("%w: its id has %d bytes, more than %d", agent.ErrTimer, len(t.ID), mostID)
	}
	if t.Length != 0 {
		t.Due = now.Add(t.Length)
	}
	t.Due = t.Due.Round(0)
	if wait := t.Due.Sub(now); t.Length < 0 || wait < shortestTimer || wait > agent.LongestTimer {
		return agent.Timer{}, fmt.Errorf("%w: it waits from one second to a day, not %s", agent.ErrTimer, wait)
	}
	return t, nil
}

// room is an error where a robot can have no further timer.
func (s *Timers) room(t agent.Timer) error {
	count := 0
	for id, p := range s.pending {
		if p.Robot == t.Robot && id != t.ID && !p.rang {
			count++
		}
	}
	if count >= mostTimers {
		return fmt.Errorf("%w: %d are set", agent.ErrTooManyTimers, count)
	}
	return nil
}

// keep writes a timer that began to count at that reading of the running
// clock.
func (s *Timers) keep(t agent.Timer, began time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.room(t); err != nil {
		return err
	}
	if err := s.kept.Put(t.ID, t); err != nil {
		return fmt.Errorf("keep a timer: %w", err)
	}
	s.pending[t.ID] = &pending{Timer: t, here: true, at: began + t.Length}
	return nil
}

// Cancel takes away a robot's timers, all of them or those with the ids, and
// returns how many are gone for good. One that the robot itself would ring is
// stopped there first; where that fails it stays, and the error says so.
func (s *Timers) Cancel(ctx context.Context, body agent.Body, robot device.ID, ids ...string) (int, error) {
	var failures []error
	gone := 0
	for _, t := range s.Pending(robot, s.clock.Now()) {
		if len(ids) > 0 && !slices.Contains(ids, t.ID) {
			continue
		}
		if err := stop(ctx, body, t); err != nil {
			failures = append(failures, err)
			continue
		}
		if err := s.remove(t.ID); err != nil {
			failures = append(failures, err)
			continue
		}
		gone++
	}
	s.news()
	return gone, errors.Join(failures...)
}

// remove forgets a timer durably.
func (s *Timers) remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.kept.Delete(id); err != nil {
		return fmt.Errorf("forget a timer: %w", err)
	}
	delete(s.pending, id)
	return nil
}

// Pending returns a robot's timers that are still to ring, the next first.
// Their Due is what is left from now, whatever the clock has done since they
// were set.
func (s *Timers) Pending(robot device.ID, now time.Time) []agent.Timer {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []agent.Timer{}
	for _, p := range s.pending {
		if p.Robot != robot || p.rang {
			continue
		}
		t := p.Timer
		t.Due = now.Round(0).Add(p.left(now, s.clock.Running()))
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b agent.Timer) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID)) })
	return list
}
