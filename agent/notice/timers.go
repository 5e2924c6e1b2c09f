package notice

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/device"
	"perch/limit"
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

// Timers stores the timers and reminders, through restarts and jumps of the wall
// clock. A Notifier announces them. It is safe for concurrent use.
type Timers struct {
	table   timerTable
	clock   clock
	changed chan struct{} // wakes the notifier

	mu       sync.Mutex
	pending  map[string]*pending
	onChange func(id string) // called after each change; may be nil
}

// pending is a timer that has not rung, with its state in this run.
type pending struct {
	agent.Timer
	thisRun bool          // set in this run
	at      time.Duration // the latest time to ring, on the running clock; unused for a reminder at a time of day
	rang    bool          // it has rung, but could not be deleted
}

// NewTimers returns the timers in a table. A nil clock means the system clock.
func NewTimers(table timerTable, c clock) *Timers {
	c = cmp.Or[clock](c, systemClock{time.Now()})
	s := &Timers{table: table, clock: c, changed: make(chan struct{}, 1), pending: map[string]*pending{}}
	running := c.Running()
	for id, t := range table.All() {
		s.pending[id] = &pending{Timer: t, at: running + t.Length}
	}
	return s
}

// Watch sets a function that is called once with the id of each timer that is set,
// cancelled, moved or has rung. It must be called before any other method, and the
// function must not call the timers.
func (s *Timers) Watch(changed func(id string)) { s.onChange = changed }

// notifyChanged calls onChange. The caller holds s.mu, so that changes stay in order.
func (s *Timers) notifyChanged(id string) {
	if s.onChange != nil {
		s.onChange(id)
	}
}

// Set stores a timer durably and returns it with its id; only then may a robot confirm
// it. The timer rings after its Length, or at its Due if Length is 0. If the body has a
// tool for reminders, the robot rings by itself. Errors wrap ErrTimer and
// ErrTooManyTimers. If ctx ends first, Set returns its error and sets nothing.
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
		err = s.insert(t, began)
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

func (s *Timers) wake() {
	select {
	case s.changed <- struct{}{}:
	default: // a wake-up is already pending
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
	if len(t.ID) > limit.Word {
		return agent.Timer{}, fmt.Errorf("%w: its id has %d bytes, more than %d", agent.ErrTimer, len(t.ID), limit.Word)
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

// checkLimit returns an error if the robot has too many timers.
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

// insert stores a timer that started at that reading of the running clock.
func (s *Timers) insert(t agent.Timer, began time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkLimit(t); err != nil {
		return err
	}
	if err := s.table.Put(t.ID, t); err != nil {
		return fmt.Errorf("keep a timer: %w", err)
	}
	s.pending[t.ID] = &pending{Timer: t, thisRun: true, at: began + t.Length}
	s.notifyChanged(t.ID)
	return nil
}

// Cancel removes a robot's timers, all of them or those with the ids, and returns
// how many it removed. A timer that the robot rings by itself is first stopped on the
// robot. If that fails, the timer stays and an error is returned.
func (s *Timers) Cancel(ctx context.Context, body agent.Body, robot device.ID, ids ...string) (int, error) {
	var failures []error
	cancelled := 0
	for _, t := range s.Pending(robot, s.clock.Now()) {
		if len(ids) > 0 && !slices.Contains(ids, t.ID) {
			continue
		}
		err := stop(ctx, body, t)
		if err == nil {
			err = s.remove(t.ID)
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		cancelled++
	}
	s.wake()
	return cancelled, errors.Join(failures...)
}

func (s *Timers) remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.table.Delete(id); err != nil {
		return fmt.Errorf("forget a timer: %w", err)
	}
	if p, there := s.pending[id]; there && !p.rang { // otherwise onChange was called when it rang
		s.notifyChanged(id)
	}
	delete(s.pending, id)
	return nil
}

// Pending returns a robot's timers that have not rung, the next first. Due is correct
// despite jumps of the clock.
func (s *Timers) Pending(robot device.ID, now time.Time) []agent.Timer {
	return slices.DeleteFunc(s.All(now), func(t agent.Timer) bool { return t.Robot != robot })
}

// All returns the timers of all robots that have not rung, as Pending does.
func (s *Timers) All(now time.Time) []agent.Timer {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []agent.Timer{}
	for _, p := range s.pending {
		if p.rang {
			continue
		}
		t := p.Timer
		t.Due = now.Round(0).Add(p.left(now, s.clock.Running()))
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b agent.Timer) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID)) })
	return list
}

// The Stack-chan firmware's tools for reminders on the robot itself. They are
// matched by the end of their names, because other builds use other prefixes.
const (
	createTool = "create_reminder" // {duration_seconds 1..86400, message, repeat}; returns its id
	stopTool   = "stop_reminder"   // {id}; returns whether it existed
)

// ErrOnRobot is wrapped by Cancel if a reminder on the robot cannot be stopped.
var ErrOnRobot = errors.New("the robot's own reminder cannot be stopped")

// create sets a reminder on the robot. If onRobot is false, the appliance has to ring.
func create(ctx context.Context, body agent.Body, t agent.Timer) (id string, onRobot bool) {
	const duration = "duration_seconds"
	tool, found := robotTool(body, createTool, duration)
	if !found {
		return "", false
	}
	seconds := int(math.Ceil(t.Due.Sub(t.Set).Seconds()))
	if seconds != tool.Schema.Properties[duration].Clamp(seconds) {
		return "", false
	}
	arguments := map[string]any{duration: seconds}
	for name, value := range map[string]any{"message": t.Text, "repeat": false} {
		if _, has := tool.Schema.Properties[name]; has {
			arguments[name] = value
		}
	}
	result, err := body.Call(ctx, tool.Name, arguments)
	if err != nil || strings.TrimSpace(result.Text) == "false" {
		return "", false
	}
	return reminderID(result.Text), true
}

// reminderID parses create_reminder's result: a number, or an object with one.
func reminderID(text string) string {
	text = strings.TrimSpace(text)
	if _, err := strconv.Atoi(text); err == nil {
		return text
	}
	var object struct{ ID *int }
	if err := json.Unmarshal([]byte(text), &object); err != nil || object.ID == nil {
		return ""
	}
	return strconv.Itoa(*object.ID)
}

// stop removes a reminder from the robot. A robot that does not know the reminder was
// restarted and will not ring.
func stop(ctx context.Context, body agent.Body, t agent.Timer) error {
	if !t.OnRobot {
		return nil
	}
	tool, found := robotTool(body, stopTool, "id")
	id, err := strconv.Atoi(t.RobotID)
	if !found || err != nil {
		return fmt.Errorf("%w: it lists no tool to do so, or did not say which it is", ErrOnRobot)
	}
	if _, err := body.Call(ctx, tool.Name, map[string]any{"id": id}); err != nil {
		return fmt.Errorf("%w: %w", ErrOnRobot, err)
	}
	return nil
}

// robotTool returns the tool whose name has that end and that has that integer argument.
func robotTool(body agent.Body, name, argument string) (device.Tool, bool) {
	if body == nil {
		return device.Tool{}, false
	}
	for _, t := range body.Tools() {
		if a, has := t.Schema.Properties[argument]; has && a.Type == "integer" && strings.HasSuffix(t.Name, name) {
			return t, true
		}
	}
	return device.Tool{}, false
}
