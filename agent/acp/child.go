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
	conn        *conn
	program     *program.Program
	initialized atomic.Bool   // whether the agent has responded to initialize
	exited      chan struct{} // closed when the process has ended and all its output has been read
}

// launch is a start of the agent.
type launch struct {
	done  chan struct{} // closed when child and err are set
	child *child        // nil if the process could not be started
	err   error         // why the agent could not be started
}

// runningConn returns a connection to an initialized agent. If no agent runs, it starts
// one; after a failure it returns the failure until the pause before the next start has
// passed. If ctx ends during a start, the start continues, and the next turn uses the agent.
func (b *Brain) runningConn(ctx context.Context) (*conn, error) {
	b.mu.Lock()
	switch wait := b.retryAt.Sub(b.o.Now()); {
	case b.closed:
		b.mu.Unlock()
		return nil, errClosed
	case b.launch == nil && b.child != nil && b.child.conn.err() == nil:
		defer b.mu.Unlock()
		return b.child.conn, nil
	case b.launch == nil && wait > 0:
		defer b.mu.Unlock()
		return nil, b.failure
	case b.launch == nil:
		l := &launch{done: make(chan struct{})}
		b.launch = l
		previous := b.child
		b.wg.Go(func() { b.start(l, previous) })
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

// start waits for the end of the previous process, which may be nil, then starts and
// initializes an agent, and sets the result of l.
func (b *Brain) start(l *launch, previous *child) {
	if previous != nil {
		<-previous.exited
	}
	c, err := b.spawn()
	if err != nil {
		b.recordFailure(err)
	} else if err = b.initialize(c); err != nil {
		c.conn.shutdown(err)
		err = c.conn.err() // the earlier reason, if the connection had ended before the shutdown
	}
	l.child, l.err = c, err
	b.mu.Lock()
	b.launch = nil
	b.mu.Unlock()
	close(l.done)
}

// recordFailure stores why the agent has ended or why its start has failed, and delays the
// next start.
func (b *Brain) recordFailure(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retryAt, b.failure = b.o.Now().Add(limit.Restart(b.failures)), err
	b.failures++
}

// recordSuccess resets the failures after a successful turn.
func (b *Brain) recordSuccess() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.retryAt, b.loginErr = 0, time.Time{}, nil
}

// Installed returns an error if the agent's program or folder does not exist. It does not
// start the agent.
func (b *Brain) Installed() error {
	if info, err := os.Stat(b.o.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%w: the folder %s for %s does not exist; create it, or set cwd to another", agent.ErrAway, b.o.Dir, b.name())
	}
	file := b.o.Command[0]
	if strings.ContainsRune(file, filepath.Separator) && !filepath.IsAbs(file) {
		file = filepath.Join(b.o.Dir, file) // exec.Cmd resolves it relative to Dir
	}
	if _, err := exec.LookPath(file); errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is not installed; install it, or give its whole path as command", agent.ErrAway, b.name())
	}
	return nil
}

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
		c.conn.shutdown(errClosed) // Close was called before b.child was set
	}
	return c, nil
}

// watch starts the goroutines of c. They stop the process when the connection ends, and
// close the connection when the process ends.
func (b *Brain) watch(c *child) {
	readDone := make(chan struct{})
	b.wg.Go(func() { c.conn.read(c.program); c.program.EndRead(); close(readDone) })
	b.wg.Go(func() { c.conn.write(c.program) })
	b.wg.Go(func() {
		defer close(c.exited)
		select {
		case <-c.conn.done:
			c.program.Close()
		case <-c.program.Done():
		}
		<-readDone
		c.conn.shutdown(b.exitError(c))
		b.logEnd(c)
	})
}

// exitError returns the error of a process that this package did not stop.
func (b *Brain) exitError(c *child) error {
	status, _ := c.program.ExitStatus()
	if !c.initialized.Load() {
		return fmt.Errorf("%w: %s ended at once (%s); run it by hand to see why, and see that its arguments make it an agent", agent.ErrAway,
			b.name(), status)
	}
	return fmt.Errorf("%w: %s ended (%s)", agent.ErrAway, b.name(), status)
}

// logEnd logs that a process has ended, with the last lines of its standard error. It logs
// nothing if Close has stopped the process.
func (b *Brain) logEnd(c *child) {
	err := c.conn.err()
	if errors.Is(err, errClosed) {
		return
	}
	b.o.Log.Warn("an agent has ended", "agent", b.name(), "err", err, "stderr", b.redact(c.program.Stderr(), program.MaxStderr))
}

// initialize sends the request initialize and stores the agent's capabilities.
func (b *Brain) initialize(c *child) error {
	var result json.RawMessage
	var failure error
	responded := make(chan struct{})
	err := c.conn.call("initialize", map[string]any{
		"protocolVersion": 1,
		"clientCapabilities": map[string]any{
			"fs": map[string]any{"readTextFile": false, "writeTextFile": false}, "terminal": false,
		},
		"clientInfo": map[string]any{"name": "perch", "title": "Perch", "version": "1"},
	}, func(r json.RawMessage, err error) { result, failure = r, err; close(responded) })
	if err != nil {
		return err
	}
	select {
	case <-time.After(b.o.Start):
		return fmt.Errorf("%w: %s does not answer initialize in %v; see that its arguments make it an agent (gemini wants --acp)",
			agent.ErrAway, b.name(), b.o.Start)
	case <-responded:
		if failure == nil {
			return b.readCapabilities(c, result)
		}
		if c.conn.err() == nil {
			return fmt.Errorf("%w: %s refuses to begin: %s", agent.ErrAway, b.name(), b.redact(failure.Error(), limit.Name))
		}
		return failure
	}
}

// readCapabilities stores the capabilities in the result of initialize. An agent that
// reports no version uses the older dialect.
func (b *Brain) readCapabilities(c *child, result json.RawMessage) error {
	var r struct {
		Version      *json.Number `json:"protocolVersion"`
		Capabilities struct {
			Session struct {
				Close json.RawMessage `json:"close"`
			} `json:"sessionCapabilities"`
			MCP    lenient[struct{ HTTP bool }]  `json:"mcpCapabilities"`
			Prompt lenient[struct{ Image bool }] `json:"promptCapabilities"`
		} `json:"agentCapabilities"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("%w: the greeting of %s cannot be read", agent.ErrAway, b.name())
	}
	if r.Version != nil && *r.Version != "1" {
		return fmt.Errorf("%w: %s speaks version %s of the Agent Client Protocol, not 1; use a release that does",
			agent.ErrAway, b.name(), plain.Clip(r.Version.String(), 20))
	}
	canClose := r.Capabilities.Session.Close
	c.conn.old = r.Version == nil
	c.conn.canClose = len(canClose) > 0 && string(canClose) != "null" && string(canClose) != "false"
	c.conn.mcp, c.conn.images = r.Capabilities.MCP.value.HTTP, r.Capabilities.Prompt.value.Image
	if b.o.Lend != nil && !c.conn.mcp {
		b.o.Log.Warn("an agent cannot use the robot's tools, timers and memory, because it does not support MCP over HTTP", "agent", b.name())
	}
	c.initialized.Store(true)
	return nil
}
