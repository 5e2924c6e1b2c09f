// Package acp drives an agent that implements version 1 of the Agent Client Protocol. The
// agent is a child process, and exchanges JSON-RPC messages, one per line, over its
// standard input and output. Examples are claude-agent-acp, gemini --acp, codex-acp, goose
// acp and zeroclaw acp. The package also supports the older dialect of zeroclaw, which has
// the notification "session/event" and the response {"approved":true}.
//
// The package does not use github.com/coder/acp-go-sdk. That library closes the connection
// when a line is longer than its buffer, and when 1024 notifications are pending, which
// happens while a robot speaks for minutes. This package skips such a line, and joins
// pending text.
//
// Concurrency: one child serves all conversations, each in a separate session. One
// goroutine reads the child's output and never blocks: it puts the events of a turn into
// the turn's bounded inbox. A second goroutine writes the child's input from a bounded
// queue. A third owns the process: when the connection ends, it kills the process and its
// process group, and Close waits for this. Turns run on the goroutines of their callers.
// Locks are acquired in the order Brain.mu, conn.mu, inbox.mu, and no callback runs with a
// lock held.
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

// Options are the options of a brain. Command and Log are required.
type Options struct {
	Command []string `yaml:"command" doc:"The agent's program and its arguments."`
	Dir     string   `yaml:"cwd" doc:"The folder it works in."` // "" means the current directory
	// Env holds additional variables for the agent. The agent also gets the variables of
	// this process, except Perch's secrets and similar variables (see child.Environ).
	Env map[string]string `yaml:"env" doc:"Variables that are added to its environment."`

	Idle  time.Duration `yaml:"idle" doc:"A new session begins after this time without a turn. If 0s, 5m."`
	Turns int           `yaml:"turns" doc:"A new session begins after so many turns. If 0, 50."`
	Age   time.Duration `yaml:"age" doc:"A new session begins after this time. If 0s, 30m."`

	// AllowKinds lists the kinds of tools that need no permission from a person. The agent
	// reports the kind of each tool.
	AllowKinds []string `yaml:"allow" doc:"Kinds of tools that need no permission: read, edit, delete, move, search, execute, think, fetch, switch_mode, other."`

	Silence time.Duration `yaml:"within" doc:"The longest time without a sign of life. If 0s, 5m."`
	Start   time.Duration // timeout of the start of the agent, and of opening a session; default: 30 s
	Turn    time.Duration // maximum waiting time for the agent in one turn; default: 30 minutes
	Words   time.Duration // maximum waiting time for the text between two tool calls; default: 300 s
	Grace   time.Duration // timeout of the response to a cancelled prompt; default: 5 s

	// MayAnswer reports whether the person at this robot may decide on permissions. If
	// nil, nobody may.
	MayAnswer func(device.ID) bool

	// Tools returns the tools of a turn, and Lend opens an endpoint that serves the tools
	// to a session. The agent gets no tools if one of these functions is nil, or if the
	// agent does not support MCP over HTTP.
	Tools func(ctx context.Context, t agent.Turn, reply func(...agent.Reply) error) *thinker.TurnTools
	Lend  func() ToolEndpoint

	Phrases agent.Phrases // spoken after a turn that the agent has refused, or that has no text

	Log *slog.Logger
	Now func() time.Time // default: time.Now
}

// StartWithin is the default of Options.Start.
const StartWithin = 30 * time.Second

// toolKinds returns the kinds of tools in version 1 of the protocol.
func toolKinds() []string {
	return []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
}

// Brain implements agent.Brain.
type Brain struct {
	o         Options
	languages language.Catalogue
	wg        sync.WaitGroup

	mu            sync.Mutex
	closed        bool                     // whether Close was called
	child         *child                   // latest process, which may have ended; nil before the first start
	launch        *launch                  // start in progress; nil at other times
	failures      int                      // how often a start has failed or the process has ended since the last successful turn
	retryAt       time.Time                // earliest time of the next start
	failure       error                    // latest failure to start, or reason for the end of the process
	loginErr      error                    // set while the agent refuses prompts because it needs a login
	conversations map[string]*conversation // key: conversation ID
}

// New returns a brain with the options o, or an error if they are invalid. The first call of
// Think, Check or DescribeImage starts the agent.
func New(o Options) (*Brain, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	for _, t := range o.timeouts() {
		*t.value = cmp.Or(*t.value, t.standard)
	}
	o.Turns = cmp.Or(o.Turns, 50)
	if o.Now == nil {
		o.Now = time.Now
	}
	dir, err := filepath.Abs(o.Dir) // the protocol requires an absolute path
	if err != nil {
		return nil, fmt.Errorf("find the agent's folder: %w", err)
	}
	o.Dir = dir
	return &Brain{o: o, conversations: map[string]*conversation{}}, nil
}

// timeout is a duration in the options.
type timeout struct {
	name     string         // name in error messages
	value    *time.Duration // field of the options
	standard time.Duration  // default
}

func (o *Options) timeouts() []timeout {
	return []timeout{
		{"idle", &o.Idle, 300 * time.Second}, {"age", &o.Age, 1800 * time.Second}, {"start", &o.Start, StartWithin},
		{"within", &o.Silence, 300 * time.Second}, {"grace", &o.Grace, 5 * time.Second}, {"turn", &o.Turn, 30 * time.Minute},
		{"words", &o.Words, 300 * time.Second},
	}
}

// Check returns an error if the options are invalid.
func (o Options) Check() error {
	if len(o.Command) == 0 || o.Command[0] == "" {
		return errors.New("an agent needs a command, such as [claude-agent-acp]")
	}
	if o.Log == nil {
		return errors.New("an agent needs a log")
	}
	for _, kind := range o.AllowKinds {
		if !slices.Contains(toolKinds(), kind) {
			return fmt.Errorf("%q is not a kind of tool; the kinds are %v", kind, toolKinds())
		}
	}
	for _, t := range o.timeouts() {
		if *t.value < 0 {
			return fmt.Errorf("an agent's %s must be above zero, not %v", t.name, *t.value)
		}
	}
	if o.Turns < 0 {
		return fmt.Errorf("a session has at least one turn, not %d", o.Turns)
	}
	return nil
}

// Name returns "acp".
func (*Brain) Name() string { return "acp" }

// name returns the name of the agent's program, for errors and the log. It omits the
// arguments and the environment, which may contain keys.
func (b *Brain) name() string { return filepath.Base(b.o.Command[0]) }

// redact returns s, cut to maxBytes, without texts that look like keys and without the
// values of Options.Env that have at least 8 bytes.
func (b *Brain) redact(s string, maxBytes int) string {
	s = plain.Clip(s, 4*maxBytes) // bounds the work; remote.Redact cuts s to maxBytes
	for _, value := range b.o.Env {
		if len(value) >= 8 {
			s = strings.ReplaceAll(s, value, "***")
		}
	}
	return remote.Redact(s, maxBytes)
}

// Think implements agent.Brain. It returns agent.ErrStranger for the turn of a stranger. It
// may ask the person for permissions. If ctx ends, Think notifies the agent and returns
// without waiting. If the agent then responds within Options.Grace, the next turn can use
// the session; otherwise the agent is killed as soon as no turn runs. A turn that takes too
// long or says too much is cancelled, and the robot says so. If the agent no longer knows
// the session, Think opens a new one and repeats the turn once.
func (b *Brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	if t.Stranger() {
		return agent.ErrStranger
	}
	conv, err := b.beginTurn(ctx, t.Conversation)
	if err != nil {
		return err
	}
	defer b.endTurn(conv)
	var tools *thinker.TurnTools
	if b.o.Tools != nil && b.o.Lend != nil {
		var mu sync.Mutex // tools reply concurrently with the agent
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
	defer b.endTools(conv)
	for retry := true; ; retry = false {
		s, err := b.openSession(ctx, conv, tools)
		if err != nil {
			return finalError(err, tools)
		}
		err = b.think(ctx, s, t, tools, out)
		if retry && errors.Is(err, errSessionLost) {
			b.discard(conv)
			continue
		}
		return finalError(err, tools)
	}
}

// think runs a turn in the session s.
func (b *Brain) think(ctx context.Context, s *session, t agent.Turn, tools *thinker.TurnTools, out func(agent.Reply) error) error {
	in, err := s.conn.prompt(s, b.promptTexts(s, t))
	if err != nil {
		return err
	}
	r := &turnRun{brain: b, session: s, inbox: in, turn: t, tools: tools, out: out,
		words: b.languages.In(t.Language), speech: thinker.NewSpeech(t.Language)}
	end, err := r.run(ctx)
	s.used = b.o.Now()
	if err != nil {
		s.conn.cancel(s, in, b.o.Grace, r.pending)
		switch {
		case errors.Is(err, errTooMuch):
			return r.finish(ended{reason: "max_tokens"})
		case errors.Is(err, errEndless):
			return r.finish(ended{reason: "max_turn_requests"})
		}
		return err
	}
	if end.err != nil {
		return b.promptError(s, end.err, r.began || tools != nil && tools.Acted())
	}
	if err := r.finish(end); err != nil {
		return err
	}
	b.recordSuccess()
	return nil
}

// Check starts the agent if it is not running, and opens and closes a session. It returns an
// error if one of these fails. Some agents report only on a prompt that they need a login;
// from then on Check returns this error until a turn succeeds.
func (b *Brain) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil { // beginTurn may succeed although ctx has ended
		return err
	}
	conv, err := b.beginTurn(ctx, "")
	if err != nil {
		return err
	}
	defer b.endTurn(conv)
	b.mu.Lock()
	loginErr := b.loginErr
	b.mu.Unlock()
	if loginErr != nil {
		return loginErr
	}
	_, err = b.openSession(ctx, conv, nil)
	b.discard(conv) // a session without tools must not serve turns
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
