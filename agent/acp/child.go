package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/agent/program"
	"perch/limit"
	"perch/plain"
)

// child is an agent's process and the connection to it.
type child struct {
	conn    *conn
	program *program.Program
	greeted atomic.Bool   // it has answered initialize
	exited  chan struct{} // closed when the process has ended and all its output has been read
}

// launch is a start under way.
type launch struct {
	done  chan struct{}
	child *child
	err   error
}

// running returns a connection to an initialized agent. If none runs, it starts one;
// the start continues if ctx ends, and the next turn can use it.
func (b *Brain) running(ctx context.Context) (*conn, error) {
	b.mu.Lock()
	switch wait := b.again.Sub(b.o.Now()); {
	case b.closed:
		b.mu.Unlock()
		return nil, errClosed
	case b.launch == nil && b.child != nil && b.child.conn.why() == nil:
		defer b.mu.Unlock()
		return b.child.conn, nil
	case b.launch == nil && wait > 0:
		defer b.mu.Unlock()
		return nil, b.why
	case b.launch == nil:
		l := &launch{done: make(chan struct{})}
		b.launch = l
		before := b.child
		b.wg.Go(func() { b.start(l, before) })
	}
	l := b.launch
	b.mu.Unlock()
	select {
	case <-l.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.err != nil {
		return nil, l.err
	}
	return l.child.conn, nil
}

// start starts the process, once the previous one has ended, and initializes it.
func (b *Brain) start(l *launch, before *child) {
	if before != nil {
		<-before.exited
	}
	c, err := b.spawn()
	if err != nil {
		b.recordFailure(err)
	} else if err = b.greet(c); err != nil {
		c.conn.shutdown(err)
		err = c.conn.why() // the process may have had a better reason
	}
	l.child, l.err = c, err
	b.mu.Lock()
	b.launch = nil
	b.mu.Unlock()
	close(l.done)
}

// recordFailure records that the agent has ended or could not be started, and delays
// its next start.
func (b *Brain) recordFailure(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.again, b.why = b.o.Now().Add(limit.Restart(b.failures)), why
	b.failures++
}

// recordSuccess resets the failures after a successful turn.
func (b *Brain) recordSuccess() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.again, b.loginErr = 0, time.Time{}, nil
}

// Installed returns why the agent could not be started, as far as can be seen without
// starting it, or nil.
func (b *Brain) Installed() error {
	if info, err := os.Stat(b.o.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%w: the folder %s for %s is not there; create it, or name another as cwd", agent.ErrAway, b.o.Dir, b.name())
	}
	file := b.o.Command[0]
	if strings.ContainsRune(file, filepath.Separator) && !filepath.IsAbs(file) {
		file = filepath.Join(b.o.Dir, file) // relative to its working folder
	}
	if _, err := exec.LookPath(file); errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is not installed; install it, or give its whole path as command", agent.ErrAway, b.name())
	}
	return nil
}

// spawn starts the process.
func (b *Brain) spawn() (*child, error) {
	if err := b.Installed(); err != nil {
		return nil, err
	}
	started, err := program.Start(program.Options{Command: b.o.Command, Dir: b.o.Dir, Env: program.Environ(b.o.Env)})
	if err != nil {
		return nil, fmt.Errorf("%w: %s cannot be started: %w", agent.ErrAway, b.name(), err)
	}
	c := &child{conn: newConn(b.o.Log, b.recordFailure), program: started, exited: make(chan struct{})}
	b.mu.Lock()
	b.child = c
	closed := b.closed
	b.mu.Unlock()
	b.watch(c)
	if closed {
		c.conn.shutdown(errClosed) // Close did not see this child
	}
	return c, nil
}

// watch starts the goroutines of a connection and waits for the end of the process,
// which ends when the connection does.
func (b *Brain) watch(c *child) {
	heard := make(chan struct{})
	b.wg.Go(func() { c.conn.read(c.program); c.program.Silent(); close(heard) })
	b.wg.Go(func() { c.conn.write(c.program) })
	b.wg.Go(func() {
		defer close(c.exited)
		select {
		case <-c.conn.done:
			c.program.Close()
		case <-c.program.Done():
		}
		<-heard
		c.conn.shutdown(b.exitError(c))
		b.logEnd(c)
	})
}

// exitError returns the error for a process that ended by itself.
func (b *Brain) exitError(c *child) error {
	how, _ := c.program.How()
	if !c.greeted.Load() {
		return fmt.Errorf("%w: %s ended at once (%s); run it by hand to see why, and see that its arguments make it an agent", agent.ErrAway,
			b.name(), how)
	}
	return fmt.Errorf("%w: %s ended (%s)", agent.ErrAway, b.name(), how)
}

// logEnd logs the end of a process, with the last of its standard error.
func (b *Brain) logEnd(c *child) {
	why := c.conn.why()
	if errors.Is(why, errClosed) {
		return
	}
	b.o.Log.Warn("an agent has ended", "agent", b.name(), "err", why, "stderr", b.redacted(c.program.Stderr(), program.MostStderr))
}

// greet sends initialize. An agent that reports no version is assumed to predate the
// protocol.
func (b *Brain) greet(c *child) error {
	var result json.RawMessage
	var failure error
	answered := make(chan struct{})
	err := c.conn.call("initialize", map[string]any{
		"protocolVersion": 1,
		"clientCapabilities": map[string]any{
			"fs": map[string]any{"readTextFile": false, "writeTextFile": false}, "terminal": false,
		},
		"clientInfo": map[string]any{"name": "perch", "title": "Perch", "version": "1"},
	}, func(r json.RawMessage, err error) { result, failure = r, err; close(answered) })
	if err != nil {
		return err
	}
	select {
	case <-time.After(b.o.Start):
		return fmt.Errorf("%w: %s does not answer initialize in %v; see that its arguments make it an agent (gemini wants --acp)",
			agent.ErrAway, b.name(), b.o.Start)
	case <-answered:
		if failure == nil {
			return b.readCapabilities(c, result)
		}
		if c.conn.why() == nil {
			return fmt.Errorf("%w: %s refuses to begin: %s", agent.ErrAway, b.name(), b.redacted(failure.Error(), limit.Name))
		}
		return failure
	}
}

func (b *Brain) readCapabilities(c *child, result json.RawMessage) error {
	var r struct {
		Version      *json.Number `json:"protocolVersion"`
		Capabilities struct {
			Session struct {
				Close json.RawMessage `json:"close"`
			} `json:"sessionCapabilities"`
			MCP lenient[struct{ HTTP bool }] `json:"mcpCapabilities"`
		} `json:"agentCapabilities"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("%w: the greeting of %s cannot be read", agent.ErrAway, b.name())
	}
	if r.Version != nil && *r.Version != "1" {
		return fmt.Errorf("%w: %s speaks version %s of the Agent Client Protocol, not 1; use a release that does",
			agent.ErrAway, b.name(), plain.Clip(r.Version.String(), 20))
	}
	closing := r.Capabilities.Session.Close
	c.conn.old = r.Version == nil
	c.conn.closes = len(closing) > 0 && string(closing) != "null" && string(closing) != "false"
	c.conn.mcp = r.Capabilities.MCP.value.HTTP
	if b.o.Lend != nil && !c.conn.mcp {
		b.o.Log.Warn("an agent has neither the robot's tools nor timers nor memory: it does not know MCP over HTTP", "agent", b.name())
	}
	c.greeted.Store(true)
	return nil
}
