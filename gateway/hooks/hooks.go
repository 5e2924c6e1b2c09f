// Package hooks serves the lifecycle hooks of coding agents such as Claude Code and Codex, in the
// formats of Claude Code and of clawd-on-desk, a desktop figure that shows what such an agent
// does. Robots without a conversation and all skins (programs that show an agent's state) show what a
// coding session does, and a robot asks aloud for the permissions that the session requests.
// docs/hooks.md lists the addresses, states and responses.
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

// talk is the part of the robots' server that shows faces.
type talk interface {
	// Reachable returns the adopted robots that can be reached.
	Reachable() []device.ID
	// ShowEmotion shows a face on a robot.
	ShowEmotion(ctx context.Context, id device.ID, e agent.Emotion) error
}

// asker asks people questions.
type asker interface {
	// Ask has a robot ask a question after its current turn, and waits for the answer
	// until the question expires. If ctx ends, the question is withdrawn. Ask returns
	// an error if the robot could not ask, or disconnected before an answer.
	Ask(ctx context.Context, id device.ID, q agent.Question) (agent.Answer, error)
}

// Options configure an API. All fields are required unless their comment gives a default.
type Options struct {
	Robots    []device.ID          // the robots that show faces and ask questions; empty means all
	Trusts    func(device.ID) bool // reports whether the owner has adopted a robot by its ID
	Talk      talk                 // shows the faces
	Asker     asker
	MayAnswer func(device.ID) bool // reports whether a robot may now ask for permissions
	Board     *agent.Board
	Bus       *event.Bus
	Hold      time.Duration // maximum wait for the answer to a permission; 0 means 60 s
	// Language returns the language of a robot as a BCP 47 tag, or the configured default
	// language for an empty ID. It does not block.
	Language func(device.ID) string
	Log      *slog.Logger
}

// holdFor is the default of Options.Hold.
const holdFor = time.Minute

// API serves the hooks.
type API struct {
	o       Options
	all     language.Catalogue // phrases of all languages
	changed chan struct{}      // holds an element if table has changed since Run last looked

	mu      sync.Mutex
	table   table
	shown   [maxSessions]view      // the published views; index: slot
	waiting map[string]*permission // waiting permissions; key: ID of the question
}

// New returns the API. Sessions expire, and robots show them, only while Run runs.
func New(o Options) *API {
	o.Hold = cmp.Or(o.Hold, holdFor)
	return &API{o: o, changed: make(chan struct{}, 1), table: table{}, waiting: map[string]*permission{}}
}

// words returns the phrases in a robot's language, or in the configured default language for an empty ID.
func (a *API) words(id device.ID) *language.Words { return a.all.In(a.o.Language(id)) }

// Run removes sessions without recent reports, and shows the others on robots, until ctx ends or the
// bus is closed.
func (a *API) Run(ctx context.Context) {
	f := newFaces(a.o.Board, time.Now())
	events, stop := f.robots.Reader(a.o.Bus).Events(ctx)
	defer stop()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for f.await(ctx, a, events, alarm.C) {
		now := time.Now()
		due := a.expire(now)
		if faceDue := a.updateFaces(ctx, f, now); due.IsZero() || !faceDue.IsZero() && faceDue.Before(due) {
			due = faceDue
		}
		alarm.Stop()
		if !due.IsZero() {
			alarm.Reset(max(due.Sub(now), time.Millisecond))
		}
	}
}

// change replaces the table and publishes the changes as events. The caller holds a.mu.
func (a *API) change(after table) {
	a.table = after
	for slot := range maxSessions {
		v := after.inSlot(slot).view()
		for _, e := range changes(name(slot), a.shown[slot], v) {
			a.o.Bus.Publish("", name(slot), e)
		}
		a.shown[slot] = v
	}
	select {
	case a.changed <- struct{}{}:
	default: // Run is already notified
	}
}

// expire sweeps the table if a sweep is due, and returns when the next one is due, or the zero time if never.
func (a *API) expire(now time.Time) (due time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if due := a.table.nextSweep(); !due.IsZero() && !now.Before(due) {
		a.change(a.table.sweep(now))
	}
	return a.table.nextSweep()
}

// Session is a coding session as other packages see it.
type Session struct {
	Agent   string // name of the program, such as "claude-code"
	ID      string // ID of the session in the agent's reports
	Session string // name of the session in published events
	State   agent.Shown
	Began   time.Time // time of the first report or permission
	Seen    time.Time // time of the latest report, or when a permission last began or ceased to wait
}

// Sessions returns the sessions, the oldest first.
func (a *API) Sessions() []Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []Session{}
	for _, s := range a.table {
		all = append(all, Session{s.agent, strings.TrimPrefix(s.key, key(s.agent, "")), name(s.slot), s.state().shown(), s.began, s.seen})
	}
	slices.SortFunc(all, func(x, y Session) int { return cmp.Or(x.Began.Compare(y.Began), cmp.Compare(x.Session, y.Session)) })
	return all
}
