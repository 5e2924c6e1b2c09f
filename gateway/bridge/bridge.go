// Package bridge serves the bridge HTTP API of the Stack-chan community. With this API another voice server sends texts
// to the agent, looks things up in the agent's memory, reports what its robots sense, and controls the robots of this
// appliance. docs/bridge.md lists the routes, the bodies, and the differences from the original document of the API.
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

// talk controls robots. If a robot cannot be reached, the error has the method Code, which returns "robot_offline".
type talk interface {
	// Reachable returns the adopted robots that can be reached, sorted by ID.
	Reachable() []device.ID
	// Speak makes a robot speak a text. If the robot cannot speak now, the text is queued until it can.
	Speak(ctx context.Context, id device.ID, text string) (queued bool, err error)
	// InjectText handles a text as if a person had said it to the robot.
	InjectText(ctx context.Context, id device.ID, text string) error
	Abort(ctx context.Context, id device.ID) error
	Tools(id device.ID) []device.Tool
	// Call calls a tool and waits for its result until ctx ends.
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
}

// mind is the agent, which replies to texts.
type mind interface {
	// Answer calls out with the parts of the reply to a turn, in order.
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	// AddExchange adds an exchange to a conversation.
	AddExchange(conversation string, e agent.Exchange, now time.Time)
}

// memory stores the memories of the appliance.
type memory interface {
	All(now time.Time) iter.Seq[agent.Entry]
	// Err returns an error if All may have missed entries.
	Err() error
	// Remember stores an entry durably.
	Remember(e agent.Entry, now time.Time) (agent.Entry, error)
}

// intake accepts perception events that another program reports for a robot. Its errors have the methods Code and
// Status.
type intake interface {
	FromProgram(robot device.ID, name string, data json.RawMessage) error
}

// board holds the states of robots.
type board interface {
	Robot(id device.ID) agent.State
	Snapshot() (states []agent.State, seq uint64)
}

// Options configures an API. A field may be empty only if its comment says so.
type Options struct {
	// Find returns the ID of the robot with the given MAC address or name.
	Find func(robot string) (device.ID, error)

	Talk   talk
	Mind   mind
	Memory memory
	Log    *Log          // stores the reported turns of another voice server
	Spoken func() []Turn // returns the turns of this appliance's robots, in any order

	Intake intake
	Senses *perception.States
	Sounds sounds
	Root   string // absolute path of the directory with the files of Sounds
	Board  board
	Bus    *event.Bus

	// Language returns the language of a robot as a BCP 47 tag. For an empty ID, it returns the appliance's default
	// language. It does not block.
	Language func(device.ID) string
	Zone     *time.Location // time zone of the owner
	Logger   *slog.Logger

	// Apply changes only the following fields.

	Deep         []thinker.Model // models for think_hard, tried in this order; if empty, the agent replies
	ShortTimeout time.Duration   // time limit of all tools, except where LongTimeout applies
	LongTimeout  time.Duration   // time limit of think_hard, and of the command take-photo
}

// API is the bridge API.
type API struct {
	o       Options                 // the options of New
	current atomic.Pointer[Options] // the options of the latest Apply
	turns   chan struct{}           // holds a value for each turn under way
	readers atomic.Int64            // number of programs that read the perception feed
	dropped atomic.Uint64           // number of programs that were disconnected because they did not read the feed
}

// New returns an API. Routes and Admin mount it.
func New(o Options) *API {
	a := &API{o: o, turns: make(chan struct{}, limit.Turns)}
	a.Apply(o)
	return a
}

// Apply changes the options that can be changed, see Options.
func (a *API) Apply(o Options) { a.current.Store(&o) }

// now returns the present time in the owner's time zone.
func (a *API) now() time.Time { return time.Now().In(a.o.Zone) }

// errNoRobot is the error for a robot that is not connected.
var errNoRobot error = &httpserver.Fault{Word: "no_robot", HTTP: http.StatusServiceUnavailable,
	Sentence: "no adopted robot of this name can be reached; wake it, or adopt it"}

// robot returns the ID of the connected robot with a MAC address or a name, or of the first connected robot if name is
// empty. The connected robots are those that talk.Reachable returns.
func (a *API) robot(name string) (device.ID, error) {
	open := a.o.Talk.Reachable()
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

// language returns the language of a session's robot, or the default language if the session has no known robot.
func (a *API) language(session string) string {
	id, _ := a.robotOf(session)
	return a.o.Language(id)
}

// robotOf returns the robot of a session. It returns false if no robot of this appliance is talking in the session.
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

// withTimeout calls do with a time limit. After the timeout, it returns a Fault with the code "tool_timeout", whose
// sentence names the tool.
func withTimeout[T any](ctx context.Context, timeout time.Duration, name string, do func(context.Context) (T, error)) (T, error) {
	late := &httpserver.Fault{Word: "tool_timeout", Sentence: fmt.Sprintf("%s did not end within %s", name, timeout), HTTP: http.StatusGatewayTimeout}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	v, err := do(limited)
	if err != nil && context.Cause(limited) == error(late) {
		err = late
	}
	return v, err
}

// requiredText returns the text of a required field as one line. It returns an error if the text is empty or has more than
// maxBytes bytes.
func requiredText(name, text string, maxBytes int) (string, error) {
	text = plain.Line(text)
	if text == "" {
		return "", httpserver.BadBody(name + " must not be empty")
	}
	if len(text) > maxBytes {
		return "", httpserver.BadBody(name + " is too long")
	}
	return text, nil
}

// truncate returns the first n characters of a text.
func truncate(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n])
}

// fault adds an HTTP status to the errors of other packages. It returns errors that have the method Code unchanged, except
// that errNoRobot replaces an error with the code "robot_offline".
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
		{Err: agent.ErrText, Word: "bad_body", HTTP: http.StatusBadRequest},
		{Err: agent.ErrEntry, Word: "bad_body", HTTP: http.StatusBadRequest},
	})
}
