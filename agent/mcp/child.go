package mcp

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"

	"perch/agent/program"
	"perch/limit"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// child is the process of a server. It implements sdk.Transport and, for its only
// connection, sdk.Connection.
type child struct {
	server  *Server
	program *program.Program // nil until the process has been started
	lines   lines

	startClosing func()        // closes done; may be called several times
	done         chan struct{} // closed when the connection begins to close

	out      chan []byte  // messages to be written
	queued   atomic.Int64 // bytes in out
	full     atomic.Bool  // whether the connection was closed because out was full
	gotMCP   atomic.Bool  // whether a message was read
	readDone atomic.Bool  // whether reading has ended
}

// maxQueued is the maximum number of messages waiting to be written; limit.File is the
// maximum of their total bytes. A server reaches these limits only if it sends requests
// without end and does not read the responses.
const maxQueued = 256

// newChild returns a child whose process has not been started.
func newChild(s *Server) *child {
	c := &child{server: s, done: make(chan struct{}), out: make(chan []byte, maxQueued)}
	c.startClosing = sync.OnceFunc(func() { close(c.done) })
	return c
}

// Connect starts the process.
func (c *child) Connect(context.Context) (sdk.Connection, error) {
	o := c.server.o
	if info, err := os.Stat(o.Dir); o.Dir != "" && (err != nil || !info.IsDir()) {
		return nil, awayf("its folder %s does not exist; create it, or set cwd to another", o.Dir)
	}
	started, err := program.Start(program.Options{Command: o.Command, Dir: o.Dir, Env: o.Env})
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return nil, awayf("%s is not installed; install it, or give its whole path as command", c.server.displayName())
	case err != nil:
		return nil, awayf("%s cannot be started: %w", c.server.displayName(), err)
	}
	c.program = started
	c.lines.reset(started)
	c.server.wg.Go(c.write)
	c.server.wg.Go(c.watch)
	return c, nil
}

// watch stops the process when the connection is being closed, and closes the connection
// when the process has ended.
func (c *child) watch() {
	select {
	case <-c.done:
	case <-c.program.Done():
	}
	if !c.readDone.Load() { // otherwise Read has called EndRead, which gives the process time to exit before it is stopped
		c.program.Terminate()
	}
	<-c.program.Done()
	c.startClosing()
}

// waitExit waits for the process to exit. It returns an error if the process exited without
// being stopped by this package.
func (c *child) waitExit() error {
	if c.program == nil {
		return nil
	}
	status, stopped := c.program.ExitStatus()
	if stopped {
		return nil
	}
	if c.gotMCP.Load() {
		return awayf("%s has ended (%s)", c.server.displayName(), status)
	}
	return awayf("%s ended at once (%s); run it by hand to see why, and see that its arguments make it an MCP server", c.server.displayName(), status)
}

// Read returns the next message of the process. Its error is errNoMCP if the output is not
// MCP, and otherwise io.EOF.
func (c *child) Read(context.Context) (jsonrpc.Message, error) {
	m, err := c.lines.next()
	if err != nil {
		c.readDone.Store(true)
		c.program.EndRead()
		if !errors.Is(err, errNoMCP) {
			err = io.EOF
		}
		return nil, err
	}
	c.gotMCP.Store(true)
	return m, nil
}

// Write queues a message for the process. If the queue is full, it closes the connection, and it
// and all later calls return errNotReading.
func (c *child) Write(_ context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	select {
	case <-c.done:
		if c.full.Load() {
			return errNotReading
		}
		return io.ErrClosedPipe
	default:
	}
	line := append(data, '\n')
	if c.queued.Add(int64(len(line))) <= limit.File {
		select {
		case c.out <- line:
			return nil
		default:
		}
	}
	c.full.Store(true)
	c.startClosing() // the process would not read further requests either
	return errNotReading
}

// write writes the queued messages to the process until the connection is being closed or
// the process has ended. After the end of the process Read fails, which ends the pending
// calls.
func (c *child) write() {
	for {
		select {
		case line := <-c.out:
			if _, err := c.program.Write(line); err != nil {
				return
			}
			c.queued.Add(-int64(len(line)))
		case <-c.done:
			return
		}
	}
}

// Close makes watch stop the process. It does not wait.
func (c *child) Close() error {
	c.startClosing()
	return nil
}

// SessionID returns "": there are no session IDs over standard input and output.
func (*child) SessionID() string { return "" }
