package perception

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"perch/device"
	"perch/event"
)

// robots execute acts. Each method returns an error if the robot's channel is closed,
// except Say, which queues its text for the next hello.
type robots interface {
	// Speak has a text spoken, at once or after the turn under way.
	Speak(ctx context.Context, id device.ID, text string) (queued bool, err error)
	Abort(ctx context.Context, id device.ID) error
	// Play plays a sound by its base name, unless the robot speaks.
	Play(ctx context.Context, id device.ID, sound string) error
	Tools(id device.ID) []device.Tool
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
}

// Options of Behaviours.
type Options struct {
	Tuning   Tuning
	Rules    []Rule         // the owner's
	Gestures Gestures       // the known ones
	Zone     *time.Location // time zone of the hours; nil is the machine's
	Bus      *event.Bus
	// Phrase returns one of the appliance's phrases by name, in a robot's language; if
	// nil, texts are spoken unchanged.
	Phrase func(id device.ID, name string) string
	Log    *slog.Logger
}

// Behaviours react to what robots sense.
type Behaviours struct {
	o        Options
	reader   *event.Reader
	reactors map[device.ID]*reactor

	woken chan struct{} // a head was moved, or the configuration changed
	mu    sync.Mutex
	next  *Options                // set by Apply, not yet applied by Run
	moved map[device.ID]time.Time // heads moved by others than behaviours
	lit   map[device.ID]time.Time // lights set by others than behaviours
}

// NewBehaviours checks the tuning and the rules and returns behaviours for Run. They
// react to what is published from now on. Errors wrap ErrTuning and ErrRule, with a
// sentence for every invalid key.
func NewBehaviours(o Options) (*Behaviours, error) {
	o.Zone = cmp.Or(o.Zone, time.Local)
	if err := o.Tuning.Check(); err != nil {
		return nil, err
	}
	if err := CheckRules(o.Rules); err != nil {
		return nil, err
	}
	return &Behaviours{o: o, reader: o.Bus.Read(), reactors: map[device.ID]*reactor{}, woken: make(chan struct{}, 1),
		moved: map[device.ID]time.Time{}, lit: map[device.ID]time.Time{}}, nil
}

// Apply changes the tuning and the rules, which have been checked. Robots continue
// their current acts.
func (b *Behaviours) Apply(t Tuning, rules []Rule) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = &Options{Tuning: t, Rules: rules}
	b.wake()
}

// wake notifies Run of a change.
func (b *Behaviours) wake() {
	select {
	case b.woken <- struct{}{}:
	default: // already notified
	}
}

// applyOptions applies the options set by Apply.
func (b *Behaviours) applyOptions() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		return
	}
	b.o.Tuning, b.o.Rules, b.next = b.next.Tuning, b.next.Rules, nil
	for _, c := range b.reactors {
		c.applyOptions(b.o)
	}
}

// Run reacts until ctx ends or the bus is closed, and all acts are done.
func (b *Behaviours) Run(ctx context.Context, r robots, o outside) {
	ctx, cancel := context.WithCancel(ctx)
	executor := newExecutor(r, o, b.o)
	defer executor.lanes.Wait()
	var pump sync.WaitGroup
	defer pump.Wait()
	defer cancel()
	events := make(chan event.Envelope)
	pump.Go(func() { b.reader.Pump(ctx, events) })
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		b.applyOptions()
		timer.Reset(time.Until(b.nextStep()))
		select {
		case e, open := <-events:
			if !open {
				return
			}
			b.handleEvent(ctx, executor, e)
		case <-b.woken:
			now := time.Now()
			for id, c := range b.reactors {
				b.applyMoves(c, id, now)
			}
		case <-timer.C:
			now := time.Now()
			for id, c := range b.reactors {
				b.applyMoves(c, id, now)
				executor.enqueue(ctx, id, now, c.step(now, nil))
			}
		}
	}
}

// handleEvent passes an event to its robot's reactor.
func (b *Behaviours) handleEvent(ctx context.Context, executor *executor, e event.Envelope) {
	if _, missed := e.Event.(event.Missed); missed {
		for _, c := range b.reactors {
			c.state = fold(c.state, e)
		}
		return
	}
	if e.Robot == "" {
		return
	}
	if _, gone := e.Event.(event.RobotForgotten); gone {
		delete(b.reactors, e.Robot)
		return
	}
	c := b.reactors[e.Robot]
	if c == nil {
		if len(b.reactors) >= mostRobots && !b.makeRoom() {
			return
		}
		c = newReactor(b.o)
		b.reactors[e.Robot] = c
	}
	b.applyMoves(c, e.Robot, e.At)
	executor.enqueue(ctx, e.Robot, e.At, c.handleEvent(e))
}

// Moves reports that a client is about to call a robot's tool. Like its brain, the
// client then reserves a head that it moves and lights that it sets for a while. Moves
// is safe for concurrent use and never blocks.
func (b *Behaviours) Moves(id device.ID, tool string) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if movesHead(tool) {
		maps.DeleteFunc(b.moved, func(_ device.ID, at time.Time) bool { return now.Sub(at) >= talkHolds })
		b.moved[id] = now
		b.wake()
	}
	if setsLights(tool) {
		maps.DeleteFunc(b.lit, func(_ device.ID, at time.Time) bool { return now.Sub(at) >= lightsAreOther })
		b.lit[id] = now
	}
}

// applyMoves passes the moves by others than behaviours to a robot's reactor.
func (b *Behaviours) applyMoves(c *reactor, id device.ID, now time.Time) {
	b.mu.Lock()
	moved, lit := b.moved[id], b.lit[id]
	b.mu.Unlock()
	c.movedAt(now, moved)
	if lit.After(c.lit) {
		c.lit = lit
	}
}

// makeRoom drops a robot that has not sensed anything yet.
func (b *Behaviours) makeRoom() bool {
	for id, c := range b.reactors {
		if c.state.Sensed.IsZero() {
			delete(b.reactors, id)
			return true
		}
	}
	return false
}

// looksAgain is the longest wait of behaviours. They wait by the monotonic clock, but
// hours are those of the wall clock, which may be set.
const looksAgain = time.Minute

func (b *Behaviours) nextStep() time.Time {
	due := time.Now().Add(looksAgain)
	for _, c := range b.reactors {
		if at := c.nextStep(); !at.IsZero() && at.Before(due) {
			due = at
		}
	}
	return due
}
