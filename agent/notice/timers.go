package notice

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/device"
	"perch/limit"
	"perch/store"
)

const (
	minTimer          = time.Second // shortest time until a timer rings
	maxTimerText      = 300         // bytes
	maxTimersPerRobot = 20
	undoTimeout       = 5 * time.Second // timeout of stopping a reminder on the robot after an error
)

// Timers stores timers, reminders and alarms. They survive restarts and jumps of the wall clock.
// A Notifier announces them. Timers is safe for concurrent use.
type Timers struct {
	table   store.Records[agent.Timer] // by ID
	clock   clock
	zone    *time.Location // of alarms
	changed chan struct{}  // receives a value for the Notifier after a change

	mu       sync.Mutex          // guards pending, and is held while onChange is called
	pending  map[string]*pending // by ID
	onChange func(id string)     // called after each change; may be nil
}

// pending is a timer that has not been removed yet.
type pending struct {
	agent.Timer
	thisRun bool          // whether the timer was set in this run of the appliance
	at      time.Duration // when to ring at the latest, on the running clock; unused if Length is 0
	rang    bool          // whether the timer has rung
}

// NewTimers returns the timers in table. A nil clock means the system clock.
func NewTimers(table store.Records[agent.Timer], c clock) *Timers {
	c = cmp.Or[clock](c, systemClock{time.Now()})
	s := &Timers{table: table, clock: c, zone: time.Local, changed: make(chan struct{}, 1), pending: map[string]*pending{}}
	running := c.Running()
	for id, t := range table.All() {
		s.pending[id] = &pending{Timer: t, at: running + t.Length}
	}
	return s
}

// In sets the time zone of alarms, which is the machine's by default. In must be called before
// any other method.
func (s *Timers) In(zone *time.Location) { s.zone = zone }

// Watch sets a function that is called with the ID of each timer that is set, cancelled or
// moved, or has rung. Watch must be called before any other method. The function must not
// call methods of s.
func (s *Timers) Watch(changed func(id string)) { s.onChange = changed }

// notifyChanged calls onChange. The caller holds s.mu, which keeps the changes in order.
func (s *Timers) notifyChanged(id string) {
	if s.onChange != nil {
		s.onChange(id)
	}
}

// Set stores a timer durably and returns it with its ID. The timer rings after its Length, or
// at its time of day At in the time zone of now. An alarm first rings at the next such time, but
// not before Due. If the robot has a tool for reminders, the robot itself rings, unless the alarm
// repeats. body may be nil. Errors wrap agent.ErrTimer or agent.ErrTooManyTimers, or come from
// the table. If ctx ends first, Set returns the error of ctx and does not set the timer.
func (s *Timers) Set(ctx context.Context, body agent.Body, t agent.Timer, now time.Time) (agent.Timer, error) {
	started := s.clock.Running()
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
	t.RobotID, t.OnRobot = createReminder(ctx, body, t)
	if err = ctx.Err(); err == nil {
		err = s.insert(t, started)
	}
	if err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		if undoErr := stopReminder(undo, body, t); undoErr != nil {
			err = errors.Join(err, undoErr)
		}
		return agent.Timer{}, err
	}
	s.wakeNotifier()
	return t, nil
}

// wakeNotifier notifies the Notifier of a change. It does not block.
func (s *Timers) wakeNotifier() {
	select {
	case s.changed <- struct{}{}:
	default: // already notified
	}
}

// prepareTimer checks a new timer and fills in its defaults.
func prepareTimer(t agent.Timer, now time.Time) (agent.Timer, error) {
	t.ID, t.Set, t.OnRobot, t.RobotID = cmp.Or(t.ID, rand.Text()[:12]), now, false, ""
	if len(t.Text) > maxTimerText {
		return agent.Timer{}, fmt.Errorf("%w: its text has %d bytes, more than %d", agent.ErrTimer, len(t.Text), maxTimerText)
	}
	if t.Text = agent.Speakable(t.Text); t.Text == "" {
		return agent.Timer{}, fmt.Errorf("%w: it has no text", agent.ErrTimer)
	}
	if len(t.ID) > limit.Word {
		return agent.Timer{}, fmt.Errorf("%w: its id has %d bytes, more than %d", agent.ErrTimer, len(t.ID), limit.Word)
	}
	if t.At != "" {
		return prepareAlarm(t, now)
	}
	t.Due = now.Add(t.Length)
	if t.Length < minTimer || t.Length > agent.MaxTimer || t.Days != 0 {
		return agent.Timer{}, fmt.Errorf("%w: a timer waits from one second to a day, not %s, and an alarm has a time of day", agent.ErrTimer, t.Length)
	}
	return t, nil
}

// prepareAlarm checks a new alarm and sets when it first rings.
func prepareAlarm(t agent.Timer, now time.Time) (agent.Timer, error) {
	clock, err := agent.ParseClock(t.At)
	if err == nil && t.Length != 0 {
		err = fmt.Errorf("%w: it has both a length and a time of day", agent.ErrTimer)
	}
	if err != nil {
		return agent.Timer{}, err
	}
	after := now
	if t.Due.After(now) {
		after = t.Due.Add(-1).In(now.Location())
	}
	t.At = clock.Format("15:04")
	t.Due = t.Next(after)
	return t, nil
}

// checkLimit returns an error if the robot of t has too many other timers. The caller holds s.mu.
func (s *Timers) checkLimit(t agent.Timer) error {
	count := 0
	for id, p := range s.pending {
		if p.Robot == t.Robot && id != t.ID && !p.rang {
			count++
		}
	}
	if count >= maxTimersPerRobot {
		return fmt.Errorf("%w: %d are set", agent.ErrTooManyTimers, count)
	}
	return nil
}

// insert stores a timer. started is the time of the running clock when the timer was set.
func (s *Timers) insert(t agent.Timer, started time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkLimit(t); err != nil {
		return err
	}
	if err := s.table.Put(t.ID, t); err != nil {
		return fmt.Errorf("store a timer: %w", err)
	}
	s.pending[t.ID] = &pending{Timer: t, thisRun: true, at: started + t.Length}
	s.notifyChanged(t.ID)
	return nil
}

// Cancel removes the timers of a robot that have one of the IDs, or all timers of the robot
// if ids is empty. It returns the number of removed timers. A timer on the robot is first
// stopped there; if that fails, the timer remains and the error wraps ErrOnRobot.
func (s *Timers) Cancel(ctx context.Context, body agent.Body, robot device.ID, ids ...string) (int, error) {
	var failures []error
	cancelled := 0
	for _, t := range s.Pending(robot, s.clock.Now()) {
		if len(ids) > 0 && !slices.Contains(ids, t.ID) {
			continue
		}
		err := stopReminder(ctx, body, t)
		if err == nil {
			err = s.remove(t.ID)
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		cancelled++
	}
	s.wakeNotifier()
	return cancelled, errors.Join(failures...)
}

// remove deletes a timer durably.
func (s *Timers) remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.table.Delete(id); err != nil {
		return fmt.Errorf("delete a timer: %w", err)
	}
	if p, ok := s.pending[id]; ok && !p.rang { // for a timer that has rung, onChange has already been called
		s.notifyChanged(id)
	}
	delete(s.pending, id)
	return nil
}

// Pending returns the timers of a robot that have not rung, the next one first. The field
// Due of each timer is corrected for jumps of the clock.
func (s *Timers) Pending(robot device.ID, now time.Time) []agent.Timer {
	return slices.DeleteFunc(s.All(now), func(t agent.Timer) bool { return t.Robot != robot })
}

// All is Pending for all timers, including those without a robot.
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

// The Stack-chan firmware's tools for reminders that ring on the robot itself. Only the end
// of a tool's name is compared, because prefixes differ between builds.
const (
	createTool = "create_reminder" // {duration_seconds 1..86400, message, repeat}; returns the ID
	stopTool   = "stop_reminder"   // {id}; returns whether the reminder existed
)

// ErrOnRobot is wrapped by the errors of Cancel, and of Set after a failure, if a reminder on
// the robot cannot be stopped.
var ErrOnRobot = errors.New("the robot's own reminder cannot be stopped")

// createReminder sets a reminder on the robot. If the robot cannot set it, onRobot is
// false, and the appliance has to ring.
func createReminder(ctx context.Context, body agent.Body, t agent.Timer) (id string, onRobot bool) {
	const duration = "duration_seconds"
	tool, ok := findTool(body, createTool, duration)
	if !ok || t.Days != 0 {
		return "", false
	}
	seconds := int(math.Ceil(t.Due.Sub(t.Set).Seconds()))
	if seconds != tool.Schema.Properties[duration].Clamp(seconds) {
		return "", false
	}
	arguments := map[string]any{duration: seconds}
	for name, value := range map[string]any{"message": t.Text, "repeat": false} {
		if _, ok := tool.Schema.Properties[name]; ok {
			arguments[name] = value
		}
	}
	result, err := body.Call(ctx, tool.Name, arguments)
	if err != nil || strings.TrimSpace(result.Text) == "false" {
		return "", false
	}
	return parseReminderID(result.Text), true
}

// parseReminderID parses the result of create_reminder: a number, or an object with the key
// id. It returns "" for any other text.
func parseReminderID(text string) string {
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

// stopReminder stops a reminder on the robot. A robot that no longer has the reminder was
// restarted and will not ring: this is not an error.
func stopReminder(ctx context.Context, body agent.Body, t agent.Timer) error {
	if !t.OnRobot {
		return nil
	}
	tool, ok := findTool(body, stopTool, "id")
	id, err := strconv.Atoi(t.RobotID)
	if !ok || err != nil {
		return fmt.Errorf("%w: the robot has no tool for this, or the reminder's id is unknown", ErrOnRobot)
	}
	if _, err := body.Call(ctx, tool.Name, map[string]any{"id": id}); err != nil {
		return fmt.Errorf("%w: %w", ErrOnRobot, err)
	}
	return nil
}

// findTool returns the tool whose name ends in suffix, and that has an integer argument
// with the given name.
func findTool(body agent.Body, suffix, argument string) (tool device.Tool, ok bool) {
	if body == nil {
		return device.Tool{}, false
	}
	for _, t := range body.Tools() {
		if a, ok := t.Schema.Properties[argument]; ok && a.Type == "integer" && strings.HasSuffix(t.Name, suffix) {
			return t, true
		}
	}
	return device.Tool{}, false
}
