// Package bridge is the bridge HTTP API of the Stack-chan community: a voice
// server elsewhere has its turns answered here, looks things up, reports what its
// robots sense and has robots here do things. docs/bridge.md lists the
// addresses, their shapes, and where they differ from the API's own document.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
)

// talk acts on robots with an open channel. Its errors have codes of their own, by which
// they are shown; that of a closed channel has the code "robot_offline".
type talk interface {
	// Open lists the robots with an open channel.
	Open() []device.ID
	Speak(ctx context.Context, id device.ID, text string) (queued bool, err error)
	// InjectText takes a text as if it had been spoken to the robot.
	InjectText(ctx context.Context, id device.ID, text string) error
	Abort(ctx context.Context, id device.ID) error
	Tools(id device.ID) []device.Tool
	// Call waits for what the tool answers, as long as ctx lives.
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
}

// mind is the agent: it answers text.
type mind interface {
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	Remembered(conversation string, e agent.Exchange, now time.Time)
}

// memory is what the appliance remembers.
type memory interface {
	All(now time.Time) iter.Seq[agent.Entry]
	// Err is why All may have missed some.
	Err() error
	// Remember is durable when it returns.
	Remember(e agent.Entry, now time.Time) (agent.Entry, error)
}

// board knows what robots are doing.
type board interface {
	Robot(id device.ID) agent.State
	Snapshot() (states []agent.State, seq uint64)
}

// Options are what the door is made of. Only fields with a note may be
// empty.
type Options struct {
	// Find is the robot that is meant by a MAC address or a name.
	Find func(robot string) (device.ID, error)

	Talk   talk
	Mind   mind
	Memory memory
	Log    *Log          // of turns that were reported here
	Spoken func() []Turn // turns that robots here took, in any order

	Perception perception
	Sounds     sounds
	Root       string // absolute, of the files in Sounds
	Board      board
	Bus        *event.Bus

	// Language is that of a robot, BCP 47, and of the household for no robot. It does
	// not block.
	Language func(device.ID) string
	Zone     *time.Location
	Logger   *slog.Logger

	// All below may be changed by Apply.

	Deep  []thinker.Model // that think_hard asks, in order; empty is the agent
	Short time.Duration   // a tool may take
	Long  time.Duration   // thinking hard, or a photo for its owner, may take
}

// API is the bridge API.
type API struct {
	o       Options                 // those that never change
	current atomic.Pointer[Options] // all, as they are now
	turns   chan struct{}           // a slot for each turn under way
	readers atomic.Int64            // of the feed
	dropped atomic.Uint64
}

// New returns the door.
func New(o Options) *API {
	d := &API{o: o, turns: make(chan struct{}, limit.Turns)}
	d.Apply(o)
	return d
}

// Apply changes what Options says may change.
func (d *API) Apply(o Options) { d.current.Store(&o) }

// now is the time in the owner's zone.
func (d *API) now() time.Time { return time.Now().In(d.o.Zone) }

// errNoRobot is the answer where there is no robot to act on.
var errNoRobot error = &httpserver.Fault{Word: "no_robot", HTTP: http.StatusServiceUnavailable,
	Sentence: "no such robot is connected; it opens its channel when somebody talks to it"}

// robot is the one a client names, by its MAC address or its name, or the
// first that is connected where it names none.
func (d *API) robot(name string) (device.ID, error) {
	open := d.o.Talk.Open()
	if name == "" {
		if len(open) == 0 {
			return "", errNoRobot
		}
		return open[0], nil
	}
	id, err := d.o.Find(name)
	if err != nil {
		return "", err
	}
	if !slices.Contains(open, id) {
		return "", errNoRobot
	}
	return id, nil
}

// language is that of the robot of a session, or else the household's.
func (d *API) language(session string) string {
	id, _ := d.robotOf(session)
	return d.o.Language(id)
}

// robotOf is the robot of that session. A voice server elsewhere has sessions of
// its own, which are unknown here.
func (d *API) robotOf(session string) (device.ID, bool) {
	if session == "" {
		return "", false
	}
	states, _ := d.o.Board.Snapshot()
	for _, s := range states {
		if s.Session == session && s.Talking && s.Robot != "" {
			return s.Robot, true
		}
	}
	return "", false
}

// within runs something that may take so long. The error of one that takes
// longer names it.
func within(ctx context.Context, most time.Duration, what string, do func(context.Context) error) error {
	late := &httpserver.Fault{Word: "tool_timeout", Sentence: fmt.Sprintf("%s did not end within %s", what, most), HTTP: http.StatusGatewayTimeout}
	limited, cancel := context.WithTimeoutCause(ctx, most, late)
	defer cancel()
	err := do(limited)
	if err != nil && context.Cause(limited) == error(late) {
		return late
	}
	return err
}

// fault gives the errors of other packages their status in HTTP. An error with a
// code of its own is left as it is.
func fault(err error) error {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		if coded.Code() == "robot_offline" {
			return errNoRobot
		}
		return err
	}
	return httpserver.AsFault(err, []httpserver.Known{
		{Err: device.ErrID, Word: "bad_robot_id", HTTP: http.StatusBadRequest},
		{Err: device.ErrArguments, Word: "bad_arguments", HTTP: http.StatusBadRequest},
		{Err: agent.ErrTooMuch, Word: "bad_body", HTTP: http.StatusBadRequest},
		{Err: agent.ErrEntry, Word: "bad_body", HTTP: http.StatusBadRequest},
	})
}
