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
	"sync"
	"syscall"
	"time"

	"perch/agent"
)

// How a process is treated.
const (
	termGrace  = 2 * time.Second        // between SIGTERM and SIGKILL
	drainGrace = 500 * time.Millisecond // for output that is still in the pipes
	mostErrors = 4 << 10                // of what it writes on standard error
	leastPause = time.Second            // before it is started again
	mostPause  = 60 * time.Second
)

// child is an agent's process and the connection to it.
type child struct {
	conn   *conn
	cmd    *exec.Cmd
	gone   chan struct{} // closed when the process and its readers have ended
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	errors tail

	mu      sync.Mutex
	greeted bool // it has answered initialize
}

// launch is a start under way.
type launch struct {
	done  chan struct{}
	child *child
	err   error
}

// running is a connection to an agent that has been greeted. It starts one
// where none runs, which goes on where ctx ends meanwhile: the next turn will
// be glad of it.
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

// start starts the process, once the one before it has ended, and greets it.
func (b *Brain) start(l *launch, before *child) {
	if before != nil {
		<-before.gone
	}
	c, err := b.spawn()
	if err != nil {
		b.failed(err)
	} else if err = b.greet(c); err != nil {
		c.conn.end(err)
		err = c.conn.why() // the process may have had a better reason
	}
	l.child, l.err = c, err
	b.mu.Lock()
	b.launch = nil
	b.mu.Unlock()
	close(l.done)
}

// failed notes that the agent has ended, or could not be started, and how long
// nobody should try again.
func (b *Brain) failed(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pause := min(leastPause<<min(b.failures, 10), mostPause)
	b.failures++
	b.again, b.why = b.o.Now().Add(pause), why
}

// good notes a turn that went well.
func (b *Brain) good() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.again, b.barred = 0, time.Time{}, nil
}

// Installed says in one sentence why the agent could not be started, as far as
// can be seen without starting it.
func (b *Brain) Installed() error {
	if info, err := os.Stat(b.o.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%w: the folder %s for %s is not there; create it, or name another as cwd", agent.ErrAway, b.o.Dir, b.name())
	}
	program := b.o.Command[0]
	if strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program) {
		program = filepath.Join(b.o.Dir, program) // where it will be started
	}
	if _, err := exec.LookPath(program); errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is not installed; install it, or give its whole path as command", agent.ErrAway, b.name())
	}
	return nil
}

// spawn starts the process in a group of its own.
func (b *Brain) spawn() (*child, error) {
	if err := b.Installed(); err != nil {
		return nil, err
	}
	cmd := exec.Command(b.o.Command[0], b.o.Command[1:]...)
	cmd.Dir = b.o.Dir
	cmd.Env = append(inherited(os.Environ()), b.o.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c := &child{cmd: cmd, gone: make(chan struct{})}
	c.conn = newConn(b.o.Log, b.failed)
	theirs, err := c.pipes()
	if err == nil {
		err = cmd.Start()
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		c.closePipes()
		return nil, fmt.Errorf("%w: %s cannot be started: %w", agent.ErrAway, b.name(), bare(err))
	}
	b.mu.Lock()
	b.child = c
	closed := b.closed
	b.mu.Unlock()
	b.watch(c)
	if closed {
		c.conn.end(errClosed) // Close has not seen this one
	}
	return c, nil
}

// bare is the cause without the path, which the sentence names already.
func bare(err error) error {
	var e *os.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// inherited leaves out of an environment what is not the agent's business:
// our keys may be in it, and the service manager's sockets.
func inherited(environ []string) []string {
	var kept []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case strings.HasPrefix(name, "PERCH_"), strings.HasPrefix(name, "LISTEN_"), strings.HasPrefix(name, "WATCHDOG_"):
		case name == "NOTIFY_SOCKET", name == "CREDENTIALS_DIRECTORY", name == "INVOCATION_ID":
		default:
			kept = append(kept, entry)
		}
	}
	return kept
}

// pipes makes the three, and returns the child's ends. They are made here
// because those of os/exec have Wait and a reader race for the last words.
func (c *child) pipes() (theirs []*os.File, err error) {
	var in, out, complaint *os.File
	if in, c.stdin, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	theirs = append(theirs, in)
	if c.stdout, out, err = os.Pipe(); err != nil {
		return theirs, fmt.Errorf("make a pipe: %w", err)
	}
	theirs = append(theirs, out)
	if c.stderr, complaint, err = os.Pipe(); err != nil {
		return theirs, fmt.Errorf("make a pipe: %w", err)
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = in, out, complaint
	return append(theirs, complaint), nil
}

func (c *child) closePipes() {
	for _, f := range []*os.File{c.stdin, c.stdout, c.stderr} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// watch starts what a process needs, and sees it to its end.
func (b *Brain) watch(c *child) {
	var readers sync.WaitGroup
	silent, exited := make(chan struct{}), make(chan error, 1)
	readers.Go(func() { c.conn.read(c.stdout); close(silent) })
	readers.Go(func() { c.errors.read(c.stderr) })
	b.wg.Go(func() { c.conn.write(c.stdin) })
	b.wg.Go(func() { exited <- c.cmd.Wait() })
	b.wg.Go(func() {
		defer close(c.gone)
		err := c.leave(exited, silent)
		// What is in the pipes is still heard. Somebody who left the group may
		// hold them open for good, so only for a moment.
		_ = c.stdout.SetReadDeadline(time.Now().Add(drainGrace))
		_ = c.stderr.SetReadDeadline(time.Now().Add(drainGrace))
		readers.Wait()
		c.conn.end(b.obituary(c, err))
		c.closePipes()
		b.tell(c)
	})
}

// leave waits until the process has ended, and ends it where the connection
// has: by closing its input and SIGTERM, and then SIGKILL. What is left of its
// group is killed in any case.
func (c *child) leave(exited <-chan error, silent <-chan struct{}) error {
	group := -c.cmd.Process.Pid
	defer func() { _ = syscall.Kill(group, syscall.SIGKILL) }()
	select {
	case err := <-exited:
		return err
	case <-c.conn.done:
	case <-silent:
		// It may be about to end; else nobody can talk to it any more.
		select {
		case err := <-exited:
			return err
		case <-c.conn.done:
		case <-time.After(drainGrace):
		}
	}
	_ = c.stdin.Close()
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case err := <-exited:
		return err
	case <-time.After(termGrace):
		_ = syscall.Kill(group, syscall.SIGKILL)
		return <-exited
	}
}

// obituary is the sentence about a process that ended by itself.
func (b *Brain) obituary(c *child, err error) error {
	how := "exit status 0"
	if err != nil {
		how = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.greeted {
		return fmt.Errorf("%w: %s ended at once (%s); run it by hand to see why, and see that its arguments make it an agent", agent.ErrAway, b.name(), how)
	}
	return fmt.Errorf("%w: %s ended (%s)", agent.ErrAway, b.name(), how)
}

// tell logs the end of a process, with its last words.
func (b *Brain) tell(c *child) {
	why := c.conn.why()
	if errors.Is(why, errClosed) {
		return
	}
	b.o.Log.Warn("an agent has ended", "agent", b.name(), "err", why, "stderr", b.redacted(c.errors.String(), mostErrors))
}

// greet makes the agent's acquaintance. One that names no version is taken to
// be from before the protocol.
func (b *Brain) greet(c *child) error {
	type answer struct {
		result json.RawMessage
		err    error
	}
	got := make(chan answer, 1)
	err := c.conn.call("initialize", map[string]any{
		"protocolVersion": 1,
		"clientCapabilities": map[string]any{
			"fs": map[string]any{"readTextFile": false, "writeTextFile": false}, "terminal": false,
		},
		"clientInfo": map[string]any{"name": "perch", "title": "Perch", "version": "1"},
	}, func(result json.RawMessage, err error) { got <- answer{result, err} })
	if err != nil {
		return err
	}
	slow := time.NewTimer(b.o.Start)
	defer slow.Stop()
	select {
	case <-slow.C:
		return fmt.Errorf("%w: %s does not answer initialize in %v; see that its arguments make it an agent (gemini wants --acp)", agent.ErrAway, b.name(), b.o.Start)
	case <-b.ctx.Done():
		return errClosed
	case a := <-got:
		if a.err == nil {
			return b.acquainted(c, a.result)
		}
		if c.conn.why() == nil {
			return fmt.Errorf("%w: %s refuses to begin: %s", agent.ErrAway, b.name(), b.redacted(a.err.Error(), mostTitle))
		}
		return a.err
	}
}

func (b *Brain) acquainted(c *child, result json.RawMessage) error {
	var r struct {
		Version      *json.Number `json:"protocolVersion"`
		Capabilities struct {
			Session struct {
				Close json.RawMessage `json:"close"`
			} `json:"sessionCapabilities"`
		} `json:"agentCapabilities"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("%w: the greeting of %s cannot be read", agent.ErrAway, b.name())
	}
	if r.Version != nil && *r.Version != "1" {
		return fmt.Errorf("%w: %s speaks version %s of the Agent Client Protocol, not 1; use a release that does", agent.ErrAway, b.name(), clip(r.Version.String(), 20))
	}
	closing := r.Capabilities.Session.Close
	c.conn.mu.Lock()
	c.conn.old = r.Version == nil
	c.conn.closes = len(closing) > 0 && string(closing) != "null" && string(closing) != "false"
	c.conn.mu.Unlock()
	c.mu.Lock()
	c.greeted = true
	c.mu.Unlock()
	return nil
}
