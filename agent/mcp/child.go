package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// How a process is treated.
const (
	termGrace  = 2 * time.Second        // between SIGTERM and SIGKILL
	drainGrace = 500 * time.Millisecond // for output that is still in the pipes
	mostErrors = 4 << 10                // of what it writes on standard error
	mostQueued = 1 << 20                // bytes that it has not read yet
)

// child is a server's process: a transport, and the one connection it makes.
type child struct {
	server *Server
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	lines  lines
	errors tail

	closing func()        // begins its end
	done    chan struct{} // closed where its end has begun
	silent  chan struct{} // closed when its output has ended
	gone    chan struct{} // closed when nothing is left of it; at once where it was never started
	started bool
	how     string // it ended by itself

	mu      sync.Mutex
	queue   [][]byte
	queued  int
	pending chan struct{} // something is in the queue
	spoke   bool          // it has said something that is of the protocol
}

func newChild(s *Server) *child {
	c := &child{server: s, done: make(chan struct{}), silent: make(chan struct{}), gone: make(chan struct{}), pending: make(chan struct{}, 1)}
	c.closing = sync.OnceFunc(func() { close(c.done) })
	return c
}

// Connect starts the process, in a group of its own.
func (c *child) Connect(context.Context) (sdk.Connection, error) {
	o := c.server.o
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	cmd.Dir = o.Dir
	cmd.Env = append(inherited(os.Environ()), o.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd = cmd
	if info, err := os.Stat(o.Dir); o.Dir != "" && (err != nil || !info.IsDir()) {
		close(c.gone)
		return nil, awayf("the folder %s for it is not there; create it, or name another as dir", o.Dir)
	}
	theirs, err := c.pipes()
	if err == nil {
		err = cmd.Start()
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		c.closePipes()
		close(c.gone)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			return nil, awayf("%s is not installed; install it, or give its whole path as command", c.server.where())
		}
		return nil, awayf("%s cannot be started: %w", c.server.where(), bare(err))
	}
	c.started = true
	c.lines.from(c.stdout)
	c.watch()
	return c, nil
}

// bare is the cause without the path, which the sentence names already.
func bare(err error) error {
	var e *os.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	var f *exec.Error
	if errors.As(err, &f) {
		return f.Err
	}
	return err
}

// inherited leaves out of an environment what is not the server's business:
// our keys may be in it, and the service manager's sockets.
func inherited(environ []string) []string {
	var kept []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case strings.HasPrefix(name, "PERCH_"), strings.HasPrefix(name, "LISTEN_"), strings.HasPrefix(name, "WATCHDOG_"):
		case name == "NOTIFY_SOCKET", name == "CREDENTIALS_DIRECTORY", name == "INVOCATION_ID", name == "JOURNAL_STREAM":
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
		return nil, err
	}
	theirs = append(theirs, in)
	if c.stdout, out, err = os.Pipe(); err != nil {
		return theirs, err
	}
	theirs = append(theirs, out)
	if c.stderr, complaint, err = os.Pipe(); err != nil {
		return theirs, err
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
func (c *child) watch() {
	exited, complained := make(chan error, 1), make(chan struct{})
	c.server.wg.Go(func() { c.errors.read(c.stderr); close(complained) })
	c.server.wg.Go(c.write)
	c.server.wg.Go(func() { exited <- c.cmd.Wait() })
	c.server.wg.Go(func() {
		defer close(c.gone)
		err, asked := c.leave(exited)
		// What is in the pipes is still heard. Somebody who left the group may
		// hold them open for good, so only for a moment.
		_ = c.stdout.SetReadDeadline(time.Now().Add(drainGrace))
		_ = c.stderr.SetReadDeadline(time.Now().Add(drainGrace))
		<-complained
		select {
		case <-c.silent:
		case <-c.done:
		}
		c.closing()
		c.closePipes()
		if !asked {
			c.how = "exit status 0"
			if err != nil {
				c.how = err.Error()
			}
		}
	})
}

// leave waits until the process has ended, and ends it where the connection
// has: by closing its input and SIGTERM, and then SIGKILL. What is left of its
// group is killed in any case.
func (c *child) leave(exited <-chan error) (err error, asked bool) {
	group := -c.cmd.Process.Pid
	defer func() { _ = syscall.Kill(group, syscall.SIGKILL) }()
	select {
	case err := <-exited:
		return err, false
	case <-c.done:
	case <-c.silent:
	}
	select {
	case <-c.silent: // and therefore closed, maybe: it may be about to end by itself
		select {
		case err := <-exited:
			return err, false
		case <-time.After(drainGrace):
		}
	default:
	}
	_ = c.stdin.Close()
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case err := <-exited:
		return err, true
	case <-time.After(termGrace):
		_ = syscall.Kill(group, syscall.SIGKILL)
		return <-exited, true
	}
}

// ended waits for the end and is the sentence about a process that ended by
// itself.
func (c *child) ended() error {
	<-c.gone
	if c.how == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spoke {
		return awayf("%s has ended (%s)", c.server.where(), c.how)
	}
	return awayf("%s ended at once (%s); run it by hand to see why, and see that its arguments make it an MCP server", c.server.where(), c.how)
}

// said is the last of what it wrote on standard error.
func (c *child) said() string { return c.errors.String() }

// Read is the next message of the protocol.
func (c *child) Read(context.Context) (jsonrpc.Message, error) {
	m, err := c.lines.next()
	if err != nil {
		select {
		case <-c.silent:
		default:
			close(c.silent) // only one goroutine reads
		}
		if !errors.Is(err, errNoMCP) {
			err = io.EOF
		}
		return nil, err
	}
	c.mu.Lock()
	c.spoke = true
	c.mu.Unlock()
	return m, nil
}

// Write has a message written. It does not wait for a process that does not
// read.
func (c *child) Write(_ context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done:
		return io.ErrClosedPipe
	default:
	}
	if c.queued += len(data) + 1; c.queued > mostQueued {
		c.closing() // what it asks meanwhile would never end
		return errDeaf
	}
	c.queue = append(c.queue, append(data, '\n'))
	select {
	case c.pending <- struct{}{}:
	default:
	}
	return nil
}

// write writes what is queued until the end of the connection, or of the
// process: then whoever waits for an answer is told by the reader.
func (c *child) write() {
	for {
		select {
		case <-c.pending:
		case <-c.done:
			return
		}
		c.mu.Lock()
		all := c.queue
		c.queue = nil
		c.mu.Unlock()
		for _, line := range all {
			if _, err := c.stdin.Write(line); err != nil {
				return
			}
			c.mu.Lock()
			c.queued -= len(line)
			c.mu.Unlock()
		}
	}
}

// Close begins the end of the process.
func (c *child) Close() error {
	c.closing()
	return nil
}

// SessionID is none.
func (*child) SessionID() string { return "" }

// tail keeps the last of what a process complains of.
type tail struct {
	mu   sync.Mutex
	text []byte
	cut  bool // there was more before
}

func (t *tail) read(r io.Reader) {
	var piece [1024]byte
	for {
		n, err := r.Read(piece[:])
		t.mu.Lock()
		t.text = append(t.text, piece[:n]...)
		if over := len(t.text) - mostErrors; over > 0 {
			t.text, t.cut = append(t.text[:0], t.text[over:]...), true
		}
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// String begins with a whole line: half a key would not be known for one.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		_, rest, _ := bytes.Cut(t.text, []byte("\n"))
		return strings.ToValidUTF8(string(rest), "")
	}
	return strings.ToValidUTF8(string(t.text), "")
}
