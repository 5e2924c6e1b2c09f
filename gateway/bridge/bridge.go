// Package bridge serves the bridge HTTP API of the Stack-chan community. With it another
// voice server lets the agent answer turns, looks things up in its memory, reports what its
// robots sense and controls the robots here. docs/bridge.md lists the addresses, the bodies,
// and the differences from the API's own document.
package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/perception"
	"perch/plain"
)

// talk controls robots with an open channel. Its errors have a Code, which is
// "robot_offline" if the channel is closed.
type talk interface {
	// Open lists the robots with an open channel.
	Open() []device.ID
	Speak(ctx context.Context, id device.ID, text string) (queued bool, err error)
	// InjectText handles a text as if it had been spoken to the robot.
	InjectText(ctx context.Context, id device.ID, text string) error
	Abort(ctx context.Context, id device.ID) error
	Tools(id device.ID) []device.Tool
	// Call waits for the tool's answer until ctx ends.
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
}

// mind is the agent: it answers text.
type mind interface {
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	Remembered(conversation string, e agent.Exchange, now time.Time)
}

// memory holds the appliance's memories.
type memory interface {
	All(now time.Time) iter.Seq[agent.Entry]
	// Err returns why All may have missed some.
	Err() error
	// Remember stores an entry durably.
	Remember(e agent.Entry, now time.Time) (agent.Entry, error)
}

// intake accepts an event that another program reports for a robot. Its errors have a Code
// and a Status.
type intake interface {
	FromProgram(robot device.ID, name string, data json.RawMessage) error
}

// board holds what robots are doing.
type board interface {
	Robot(id device.ID) agent.State
	Snapshot() (states []agent.State, seq uint64)
}

// Options configure an API. Only fields whose comment says so may be empty.
type Options struct {
	// Find returns the robot with a MAC address or a name.
	Find func(robot string) (device.ID, error)

	Talk   talk
	Mind   mind
	Memory memory
	Log    *Log          // of the turns that were reported here
	Spoken func() []Turn // turns of the robots here, in any order

	Intake intake
	Senses *perception.States
	Sounds sounds
	Root   string // absolute path of the files in Sounds
	Board  board
	Bus    *event.Bus

	// Language returns the language of a robot as a BCP 47 tag, and the household's for
	// an empty ID. It does not block.
	Language func(device.ID) string
	Zone     *time.Location
	Logger   *slog.Logger

	// Apply changes the fields below.

	Deep  []thinker.Model // for think_hard, in order; if empty, the agent answers
	Short time.Duration   // time limit of a tool
	Long  time.Duration   // time limit of think_hard, and of a picture for the owner
}

// API is the bridge API.
type API struct {
	o       Options                 // as given to New
	current atomic.Pointer[Options] // as given to the latest Apply
	turns   chan struct{}           // a slot for each turn under way
	readers atomic.Int64            // of the feed
	dropped atomic.Uint64
}

// New returns the API.
func New(o Options) *API {
	a := &API{o: o, turns: make(chan struct{}, limit.Turns)}
	a.Apply(o)
	return a
}

// Apply changes the options that may change, see Options.
func (a *API) Apply(o Options) { a.current.Store(&o) }

// now returns the time in the owner's zone.
func (a *API) now() time.Time { return time.Now().In(a.o.Zone) }

// errNoRobot is returned if the robot is not connected.
var errNoRobot error = &httpserver.Fault{Word: "no_robot", HTTP: http.StatusServiceUnavailable,
	Sentence: "no such robot is connected; it opens its channel when somebody talks to it"}

// robot returns the connected robot with a MAC address or a name; an empty name means the
// first connected one.
func (a *API) robot(name string) (device.ID, error) {
	open := a.o.Talk.Open()
	if name == "" {
		if len(open) == 0 {
			return "", errNoRobot
		}
		return open[0], nil
	}
	id, err := a.o.Find(name)
	if err != nil {
		return "", err
	}
	if !slices.Contains(open, id) {
		return "", errNoRobot
	}
	return id, nil
}

// language returns the language of a session's robot, or else the household's.
func (a *API) language(session string) string {
	id, _ := a.robotOf(session)
	return a.o.Language(id)
}

// robotOf returns the robot of a session. The sessions of another voice server are unknown.
func (a *API) robotOf(session string) (device.ID, bool) {
	if session == "" {
		return "", false
	}
	states, _ := a.o.Board.Snapshot()
	for _, s := range states {
		if s.Session == session && s.Talking && s.Robot != "" {
			return s.Robot, true
		}
	}
	return "", false
}

// within calls do with a time limit. After that time its error is a Fault that names what.
func within[T any](ctx context.Context, most time.Duration, what string, do func(context.Context) (T, error)) (T, error) {
	late := &httpserver.Fault{Word: "tool_timeout", Sentence: fmt.Sprintf("%s did not end within %s", what, most), HTTP: http.StatusGatewayTimeout}
	limited, cancel := context.WithTimeoutCause(ctx, most, late)
	defer cancel()
	v, err := do(limited)
	if err != nil && context.Cause(limited) == error(late) {
		err = late
	}
	return v, err
}

// required returns a required text in one line, of at most most bytes.
func required(name, text string, most int) (string, error) {
	text = plain.Line(text)
	if text == "" {
		return "", httpserver.BadBody(name + " is needed, a text that is not empty")
	}
	if len(text) > most {
		return "", httpserver.BadBody(name + " is too long")
	}
	return text, nil
}

// cut returns at most n characters of a text.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n])
}

// fault adds the HTTP status to errors of other packages. Errors with a Code are returned
// unchanged.
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
