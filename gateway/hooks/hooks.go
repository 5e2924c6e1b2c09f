// Package hooks takes what coding agents' lifecycle hooks report, in the shape of
// clawd-on-desk or as Claude Code itself sends it: what a coding session is doing
// shows on the robots that are idle and on every skin, and what it asks
// permission for is asked aloud and shown. docs/hooks.md lists addresses, states
// and answers.
package hooks

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/language"
)

// talk acts on the connected robots.
type talk interface {
	// Open are the robots with an open channel, after its hello.
	Open() []device.ID
	// Feel has a robot show a face.
	Feel(ctx context.Context, id device.ID, e agent.Emotion) error
}

// asker puts questions to people.
type asker interface {
	// Ask has a robot ask a question, after the turn under way, and waits until the
	// question's time is over. The end of ctx withdraws it. An error is a robot
	// that could not ask, or whose channel has closed before there was an answer.
	Ask(ctx context.Context, id device.ID, q agent.Question) (agent.Answer, error)
}

// Options are what the door is made of. Only fields with a note may be
// empty.
type Options struct {
	Robots    []device.ID          // that show and ask; empty is all
	Trusts    func(device.ID) bool // whether a robot was adopted by name
	Talk      talk                 // shows the faces
	Asker     asker
	MayAnswer func(device.ID) bool // whether an answer to a robot may allow something
	Board     *agent.Board
	Bus       *event.Bus
	Hold      time.Duration // a permission waits for its answer; 0 is 60 s
	// Language is that of a robot, BCP 47, and of the household for no robot. It does
	// not block. Nil is English.
	Language func(device.ID) string
	Log      *slog.Logger
}

// holdFor is how long a permission is held by default. The person at the terminal
// waits as long, before the agent asks there.
const holdFor = time.Minute

// API is what the hooks talk to.
type API struct {
	o       Options
	all     language.Catalogue // in which it is asked, and answers may be
	changed chan struct{}      // something shows that did not, or no longer

	mu    sync.Mutex
	table table
	shown [mostSessions]view // as each slot was last published
	held  map[string]*held   // permissions, by the id of their question
}

// New returns the door. Run has its sessions age, and show on robots.
func New(o Options) *API {
	o.Hold = cmp.Or(o.Hold, holdFor)
	if o.Language == nil {
		o.Language = func(device.ID) string { return "" }
	}
	return &API{o: o, changed: make(chan struct{}, 1), table: table{}, held: map[string]*held{}}
}

// words are those of a robot, and of the household for no robot.
func (d *API) words(id device.ID) *language.Words { return d.all.In(d.o.Language(id)) }

// Run has sessions age, and robots show what they do, until ctx ends or the bus
// is closed.
func (d *API) Run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	events := make(chan event.Envelope)
	var pump sync.WaitGroup
	defer pump.Wait()
	defer stop()
	f := newFaces(d.o.Board, time.Now())
	reader := f.robots.Reader(d.o.Bus)
	pump.Go(func() { reader.Pump(ctx, events) })
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for f.await(ctx, d, events, alarm.C) {
		now := time.Now()
		due := d.age(now)
		if idle := d.updateFaces(ctx, f, now); due.IsZero() || !idle.IsZero() && idle.Before(due) {
			due = idle
		}
		alarm.Stop()
		if !due.IsZero() {
			alarm.Reset(max(due.Sub(now), time.Millisecond))
		}
	}
}

// change replaces the table, and publishes what that changes of what its sessions
// show. The lock must be held.
func (d *API) change(after table) {
	d.table = after
	for slot := range mostSessions {
		v := after.inSlot(slot).view()
		for _, e := range between(name(slot), d.shown[slot], v) {
			d.o.Bus.Publish("", name(slot), e)
		}
		d.shown[slot] = v
	}
	select {
	case d.changed <- struct{}{}:
	default: // Run has yet to look at the last
	}
}

// age ends what is due, and returns when the next is due.
func (d *API) age(now time.Time) (due time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if due := d.table.nextSweep(); !due.IsZero() && !now.Before(due) {
		d.change(d.table.sweep(now))
	}
	return d.table.nextSweep()
}

// Session is a coding session as it is shown.
type Session struct {
	Agent   string      // the program: "claude-code"
	ID      string      // its own id of the session
	Session string      // its name on the bus
	State   agent.Shown // that it is in
	Began   time.Time   // its first report
	Seen    time.Time   // its latest
}

// Sessions are those that report, the first that came first.
func (d *API) Sessions() []Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := []Session{}
	for _, s := range d.table {
		all = append(all, Session{s.agent, strings.TrimPrefix(s.key, key(s.agent, "")), name(s.slot), s.state().shown(), s.began, s.seen})
	}
	slices.SortFunc(all, func(a, b Session) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Session, b.Session)) })
	return all
}
