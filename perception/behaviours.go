package perception

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"perch/device"
	"perch/event"
)

// robots executes acts on robots. The methods return an error if the robot's channel is
// closed, except Speak, which queues the text until the robot opens its channel again.
type robots interface {
	// Speak speaks a text at once, or after the conversation's turn that is under way. queued is true
	// if the text is queued because the robot cannot speak it now.
	Speak(ctx context.Context, id device.ID, text string) (queued bool, err error)
	// Abort stops the conversation's turn that is under way.
	Abort(ctx context.Context, id device.ID) error
	// Play plays a sound by its base name, unless the robot is speaking.
	Play(ctx context.Context, id device.ID, sound string) error
	Tools(id device.ID) []device.Tool
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
}

// Options configure Behaviours.
type Options struct {
	Tuning   Tuning
	Rules    []Rule         // the owner's rules
	Gestures Gestures       // the gestures that can be requested by name
	Zone     *time.Location // time zone of all Hours; nil means time.Local
	Bus      *event.Bus
	// Phrase returns a phrase in a robot's language by its name, such as "hello". If Phrase is nil,
	// the texts of DefaultTuning are spoken in English.
	Phrase func(id device.ID, name string) string
	Log    *slog.Logger
}

// Behaviours makes robots react to their perceptions.
type Behaviours struct {
	reader  *event.Reader
	changed chan struct{} // receives a value after Apply or RecordToolCall has changed a reactor

	mu       sync.Mutex // guards the fields below
	o        Options
	reactors map[device.ID]*reactor
}

// NewBehaviours checks the tuning and the rules. When Run is called, the result reacts to
// events that were published after the call of NewBehaviours. An error wraps ErrTuning, or else
// ErrRule, and contains a message for every invalid key of the tuning or of the rules.
func NewBehaviours(o Options) (*Behaviours, error) {
	o.Zone = cmp.Or(o.Zone, time.Local)
	if err := o.Tuning.Check(); err != nil {
		return nil, err
	}
	if err := CheckRules(o.Rules); err != nil {
		return nil, err
	}
	return &Behaviours{o: o, reader: o.Bus.Read(), reactors: map[device.ID]*reactor{}, changed: make(chan struct{}, 1)}, nil
}

// Apply replaces the tuning and the rules, which the caller must have checked. Robots
// continue their current acts.
func (b *Behaviours) Apply(t Tuning, rules []Rule) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.o.Tuning, b.o.Rules = t, rules
	for _, c := range b.reactors {
		c.applyOptions(b.o)
	}
	b.notifyRun()
}

// notifyRun notifies Run of a change. It does not block.
func (b *Behaviours) notifyRun() {
	select {
	case b.changed <- struct{}{}:
	default: // already notified
	}
}

// Run reacts to events until ctx ends or the bus is closed. It returns after all acts have
// ended.
func (b *Behaviours) Run(ctx context.Context, r robots, s services) {
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	executor := newExecutor(r, s, b.movedAt, b.o)
	b.mu.Unlock()
	defer executor.lanes.Wait()
	defer cancel()
	events, stop := b.reader.Events(ctx)
	defer stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(b.nextStep()))
		select {
		case e, open := <-events:
			if !open {
				return
			}
			b.handleEvent(ctx, executor, e)
		case <-b.changed:
		case <-timer.C:
			b.step(ctx, executor, time.Now())
		}
	}
}

// step queues the acts of all robots that are due.
func (b *Behaviours) step(ctx context.Context, executor *executor, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, c := range b.reactors {
		executor.enqueue(ctx, id, now, c.step(now, nil))
	}
}

// handleEvent passes an event to its robot's reactor and queues the requested acts. It
// publishes a Presence when the robot has come online or gone offline.
func (b *Behaviours) handleEvent(ctx context.Context, executor *executor, e event.Envelope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, missed := e.Event.(event.Missed); missed {
		for _, c := range b.reactors {
			c.state = fold(c.state, e)
		}
		return
	}
	if _, forgotten := e.Event.(event.RobotForgotten); forgotten {
		delete(b.reactors, e.Robot)
		return
	}
	c := b.reactors[e.Robot]
	if c == nil {
		if !startsState(e) || len(b.reactors) >= maxRobots && !b.makeRoom() {
			return
		}
		c = newReactor(b.o)
		b.reactors[e.Robot] = c
	}
	wasOnline := c.state.Online
	executor.enqueue(ctx, e.Robot, e.At, c.handleEvent(e))
	switch {
	case c.state.Online && !wasOnline:
		b.o.Bus.Publish(e.Robot, "", event.Presence{State: "online"})
	case !c.state.Online && wasOnline:
		b.o.Bus.Publish(e.Robot, "", event.Presence{State: "offline"})
	}
}

// RecordToolCall records that a client or the robot's agent is about to call a tool of the robot with these
// arguments. If the tool moves the head or sets the lights, the behaviours do not change the head or the lights
// for a while. RecordToolCall is safe for concurrent use, and does not wait for a robot.
func (b *Behaviours) RecordToolCall(id device.ID, tool string, arguments map[string]any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.reactors[id]; c != nil {
		c.handleTool(tool, arguments, time.Now())
		b.notifyRun()
	}
}

// movedAt returns when an agent or a client last moved a robot's head.
func (b *Behaviours) movedAt(id device.ID) (at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.reactors[id]; c != nil {
		at = c.movedAt
	}
	return at
}

// makeRoom drops a robot that has not sensed anything yet, and reports whether it has found
// such a robot. The caller holds b.mu.
func (b *Behaviours) makeRoom() bool {
	for id, c := range b.reactors {
		if c.state.Sensed.IsZero() {
			delete(b.reactors, id)
			return true
		}
	}
	return false
}

// maxWait is the longest time that Run waits. Timers follow the monotonic clock, but the quiet
// hours and other Hours depend on the wall clock, which may be set.
const maxWait = time.Minute

// nextStep returns when Run must call the reactors without an event, at most maxWait from now.
func (b *Behaviours) nextStep() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	due := time.Now().Add(maxWait)
	for _, c := range b.reactors {
		if at := c.nextStep(); !at.IsZero() && at.Before(due) {
			due = at
		}
	}
	return due
}
