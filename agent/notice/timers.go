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

// Bounds of a timer.
const (
	shortestTimer = time.Second
	mostTimerText = 300 // bytes
	mostTimers    = 20  // of one robot
	undoWithin    = 5 * time.Second
)

// timerTable stores timers by id. Put and Delete are durable when they return.
type timerTable interface {
	Put(key string, t agent.Timer) error
	Delete(key string) error
	All() iter.Seq2[string, agent.Timer]
}

// Timers keeps the timers and reminders, through restarts and jumps of the wall
// clock. A Notifier announces them. Its methods may be called from any goroutine.
type Timers struct {
	kept    timerTable
	clock   clock
	changed chan struct{} // wakes the notifier

	mu      sync.Mutex
	pending map[string]*pending
}

// pending is a timer that has not rung, and its state in this run.
type pending struct {
	agent.Timer
	thisRun bool          // it was set in this run
	at      time.Duration // the latest time to ring, on the running clock; unused for a reminder at a clock time
	rang    bool          // it has rung, and could not be deleted
}

// NewTimers returns the timers kept in a table. Those in it wait on. A nil clock
// is the computer's.
func NewTimers(kept timerTable, c clock) *Timers {
	if c == nil {
		c = systemClock{time.Now()}
	}
	s := &Timers{kept: kept, clock: c, changed: make(chan struct{}, 1), pending: map[string]*pending{}}
	running := c.Running()
	for id, t := range kept.All() {
		s.pending[id] = &pending{Timer: t, at: running + t.Length}
	}
	return s
}

// Set stores a timer durably and returns it with its id. Only then may a robot say
// that it is set. The timer rings after its Length, or, if that is 0, at its Due.
// If the body has a tool for reminders, the robot rings by itself. Set wraps
// ErrTimer and ErrTooManyTimers. If ctx ends first, Set returns its error and
// nothing is set.
func (s *Timers) Set(ctx context.Context, body agent.Body, t agent.Timer, now time.Time) (agent.Timer, error) {
	began := s.clock.Running()
	t, err := prepareTimer(t, now.Round(0))
	if err != nil {
		return agent.Timer{}, err
	}
	s.mu.Lock()
	err = s.checkLimit(t)
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
	s.wake()
	return t, nil
}

// wake has the notifier look at the timers again.
func (s *Timers) wake() {
	select {
	case s.changed <- struct{}{}:
	default: // it has not taken the last call yet
	}
}

// prepareTimer checks a new timer and fills in its defaults.
func prepareTimer(t agent.Timer, now time.Time) (agent.Timer, error) {
	t.ID, t.Set, t.OnRobot, t.RobotID = cmp.Or(t.ID, rand.Text()[:12]), now, false, ""
	if len(t.Text) > mostTimerText {
		return agent.Timer{}, fmt.Errorf("%w: its text has %d bytes, more than %d", agent.ErrTimer, len(t.Text), mostTimerText)
	}
	if t.Text = agent.Speakable(t.Text); t.Text == "" {
		return agent.Timer{}, fmt.Errorf("%w: it has no text", agent.ErrTimer)
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

// checkLimit fails if the robot has all the timers it may have.
func (s *Timers) checkLimit(t agent.Timer) error {
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

// keep stores a timer that began to count at that reading of the running clock.
func (s *Timers) keep(t agent.Timer, began time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkLimit(t); err != nil {
		return err
	}
	if err := s.kept.Put(t.ID, t); err != nil {
		return fmt.Errorf("keep a timer: %w", err)
	}
	s.pending[t.ID] = &pending{Timer: t, thisRun: true, at: began + t.Length}
	return nil
}

// Cancel removes a robot's timers, all of them or those with the ids, and returns
// how many it has removed. If the robot rings a timer by itself, it is stopped on
// the robot first. If that fails, the timer stays and the error says so.
func (s *Timers) Cancel(ctx context.Context, body agent.Body, robot device.ID, ids ...string) (int, error) {
	var failures []error
	cancelled := 0
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
		cancelled++
	}
	s.wake()
	return cancelled, errors.Join(failures...)
}

// remove deletes a timer durably.
func (s *Timers) remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.kept.Delete(id); err != nil {
		return fmt.Errorf("forget a timer: %w", err)
	}
	delete(s.pending, id)
	return nil
}

// Pending returns a robot's timers that have not rung, the next first. Each Due is
// now plus the remaining time, whatever the clock has done since the timer was
// set.
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
