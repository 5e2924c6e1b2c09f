// Package acp drives an agent that speaks the Agent Client Protocol: a child
// process, JSON-RPC on its standard input and output, one object to a line,
// protocol version 1. claude-agent-acp, gemini --acp, codex-acp, goose acp and
// zeroclaw acp are such agents. The dialect that zeroclaw spoke before it
// followed the protocol ("session/event", {"approved":true}) is recognised.
//
// The framing does not use github.com/coder/acp-go-sdk, because that library ends the
// connection at a line beyond its scanner's buffer and at its 1025th pending
// notification, while here a speaker may let the agent wait for minutes: a line that
// is too long is skipped, and text that waits is joined.
//
// Concurrency: one child serves all conversations, each in a separate session. One
// goroutine reads its output without ever waiting: the events of a turn go to the
// turn's bounded inbox. One writes its input from a bounded queue. One owns the
// process: when the connection ends, it kills the process with its whole group, and
// Close waits for that. Turns run on the goroutines of their callers. Locks are taken
// in the order Brain.mu, conn.mu, inbox.mu, and no callback runs under one.
package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/device"
	"perch/language"
	"perch/plain"
	"perch/remote"
)

// Options of the brain. Zero values mean the defaults given.
type Options struct {
	Command []string `yaml:"command" doc:"The agent's program and its arguments."`
	Dir     string   `yaml:"cwd" doc:"The folder it works in."` // the current one if empty
	// Env is added to the appliance's own environment, without variables that begin
	// with PERCH_ or come from the service manager.
	Env map[string]string `yaml:"env" doc:"Variables that are added to its environment."`

	Idle  time.Duration `yaml:"idle" doc:"A new session begins after this time without a turn. If 0s, 5m."`
	Turns int           `yaml:"turns" doc:"A new session begins after so many turns. If 0, 50."`
	Age   time.Duration `yaml:"age" doc:"A new session begins after this time. If 0s, 30m."`

	// AllowKinds are kinds of tools that need no permission of a person. The agent itself
	// reports the kind of a tool.
	AllowKinds []string `yaml:"allow" doc:"Kinds of tools that need no permission: read, edit, delete, move, search, execute, think, fetch, switch_mode, other."`

	Silence time.Duration `yaml:"within" doc:"The longest time without a sign of life. If 0s, 5m."`
	Start   time.Duration // for the agent to come up, and to open a session; 30 s
	Turn    time.Duration // for all of a turn, without the time for listening and questions; half an hour
	Words   time.Duration // for the words between two tools; 300 s
	Grace   time.Duration // for a cancelled prompt to be answered; 5 s

	// MayAnswer reports whether the robot in the turn may answer a permission: an
	// adopted one may. If nil, nobody may.
	MayAnswer func(device.ID) bool

	// Tools returns the tools of a turn, and Lend opens an endpoint through which a
	// session reaches them. An agent gets none if they are nil, or if it does not
	// support MCP over HTTP.
	Tools func(ctx context.Context, t agent.Turn, reply func(...agent.Reply) error) *thinker.TurnTools
	Lend  func() ToolEndpoint

	Phrases agent.Phrases // said if the agent says nothing

	Log *slog.Logger     // needed
	Now func() time.Time // time.Now
}

// StartWithin is the default time for an agent to start.
const StartWithin = 30 * time.Second

// kinds returns the kinds of tools in protocol version 1.
func kinds() []string {
	return []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
}

// Brain implements agent.Brain.
type Brain struct {
	o         Options
	languages language.Catalogue
	wg        sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	child    *child  // the latest; may have ended
	launch   *launch // a start under way
	failures int     // since the last good turn
	again    time.Time
	why      error // of the last failure
	loginErr error // the last prompt was refused because a login is needed
	talks    map[string]*talk
	spare    talk // holds a session that Check opened
}

// New checks the options. It starts nothing: the first turn or Check starts the agent.
func New(o Options) (*Brain, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	for _, d := range o.deadlines() {
		*d.of = cmp.Or(*d.of, d.standard)
	}
	o.Turns = cmp.Or(o.Turns, 50)
	if o.Now == nil {
		o.Now = time.Now
	}
	dir, err := filepath.Abs(o.Dir) // the protocol wants it absolute
	if err != nil {
		return nil, fmt.Errorf("find the agent's folder: %w", err)
	}
	o.Dir = dir
	return &Brain{o: o, talks: map[string]*talk{}}, nil
}

// deadline is one of the durations in the options, with its default.
type deadline struct {
	name     string
	of       *time.Duration
	standard time.Duration
}

func (o *Options) deadlines() []deadline {
	return []deadline{
		{"idle", &o.Idle, 300 * time.Second}, {"age", &o.Age, 1800 * time.Second}, {"start", &o.Start, StartWithin},
		{"silence", &o.Silence, 300 * time.Second}, {"grace", &o.Grace, 5 * time.Second}, {"turn", &o.Turn, 30 * time.Minute},
		{"words", &o.Words, 300 * time.Second},
	}
}

// Check returns what New would refuse.
func (o Options) Check() error {
	if len(o.Command) == 0 || o.Command[0] == "" {
		return errors.New("an agent needs a command, such as [claude-agent-acp]")
	}
	if o.Log == nil {
		return errors.New("an agent needs a log")
	}
	for _, kind := range o.AllowKinds {
		if !slices.Contains(kinds(), kind) {
			return fmt.Errorf("%q is no kind of tool; there are %v", kind, kinds())
		}
	}
	for _, d := range o.deadlines() {
		if *d.of < 0 {
			return fmt.Errorf("an agent's %s is a time, not %v", d.name, *d.of)
		}
	}
	if o.Turns < 0 {
		return fmt.Errorf("a session has at least one turn, not %d", o.Turns)
	}
	return nil
}

// Name is "acp".
func (*Brain) Name() string { return "acp" }

// name returns the agent's name for errors and the log. Its arguments and
// environment may hold keys, so they are never shown.
func (b *Brain) name() string { return filepath.Base(b.o.Command[0]) }

// redacted blanks what looks like a key and the values of the agent's environment,
// and cuts a text to most bytes.
func (b *Brain) redacted(s string, most int) string {
	s = plain.Clip(s, 4*most)
	for _, value := range b.o.Env {
		if len(value) >= 8 {
			s = strings.ReplaceAll(s, value, "***")
		}
	}
	return remote.Redact(s, most)
}

// Think answers one turn, which may ask for permissions on the way. When ctx
// ends, the agent is notified and Think returns at once; the session can be
// used again if the agent confirms within Options.Grace, and otherwise the agent is
// killed as soon as no other turn needs it. An agent that takes longer or says more
// than a person listens to is stopped, and the robot says that it was cut off.
func (b *Brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	if t.Stranger() {
		return agent.ErrStranger
	}
	k, err := b.enter(ctx, t.Conversation)
	if err != nil {
		return err
	}
	defer b.leave(k)
	var tools *thinker.TurnTools
	if b.o.Tools != nil && b.o.Lend != nil {
		var mu sync.Mutex // tools speak concurrently with the agent
		inner := out
		out = func(r agent.Reply) error {
			mu.Lock()
			defer mu.Unlock()
			return inner(r)
		}
		tools = b.o.Tools(ctx, t, func(replies ...agent.Reply) error {
			for _, r := range replies {
				if err := out(r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	defer b.endTools(k)
	for again := true; ; again = false {
		s, err := b.session(ctx, k, tools)
		if err != nil {
			return acted(err, tools)
		}
		err = b.think(ctx, s, t, tools, out)
		if again && errors.Is(err, errForgotten) {
			b.discard(k)
			continue
		}
		return acted(err, tools)
	}
}

// think runs one turn in an open session.
func (b *Brain) think(ctx context.Context, s *session, t agent.Turn, tools *thinker.TurnTools, out func(agent.Reply) error) error {
	in, err := s.conn.prompt(s, b.words(s, t))
	if err != nil {
		return err
	}
	r := &turnRun{brain: b, session: s, inbox: in, turn: t, tools: tools, out: out,
		said: b.languages.In(t.Language), speech: thinker.NewSpeech(t.Language)}
	end, err := r.run(ctx)
	s.used = b.o.Now()
	if err != nil {
		s.conn.cancel(s, in, b.o.Grace, r.asking)
		switch {
		case errors.Is(err, errTooMuch):
			return r.finish(ended{reason: "max_tokens"})
		case errors.Is(err, errEndless):
			return r.finish(ended{reason: "max_turn_requests"})
		}
		return err
	}
	if end.err != nil {
		return b.refused(s, end.err, r.began || tools != nil && tools.Acted())
	}
	if err := r.finish(end); err != nil {
		return err
	}
	b.recordSuccess()
	return nil
}

// Check reports whether the agent can be started and opens a session. It
// starts the agent if it is not running, and retains the session for the next
// conversation. An agent may only report with the first prompt that it needs a login;
// Check then returns that error until a turn succeeds.
func (b *Brain) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil { // which a free lock would not reveal
		return err
	}
	k, err := b.enter(ctx, "")
	if err != nil {
		return err
	}
	defer b.leave(k)
	b.mu.Lock()
	loginErr := b.loginErr
	b.mu.Unlock()
	if loginErr != nil {
		return loginErr
	}
	s, err := b.session(ctx, &b.spare, nil)
	if err == nil && b.o.Lend != nil && s.conn.mcp {
		b.discard(&b.spare) // it has no tools
	}
	return err
}

// Close stops the agent and waits until it has ended. Running turns fail.
func (b *Brain) Close() {
	b.mu.Lock()
	b.closed = true
	c := b.child
	b.mu.Unlock()
	if c != nil {
		c.conn.shutdown(errClosed)
	}
	b.wg.Wait()
}
