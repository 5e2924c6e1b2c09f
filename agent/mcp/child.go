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

// child is a server's process: a transport with a single connection.
type child struct {
	server  *Server
	program *program.Program // nil if it was never started
	lines   lines

	closing func()        // starts closing the connection
	done    chan struct{} // closed when closing has started

	out    chan []byte  // messages to be written
	spoke  atomic.Bool  // a message of the protocol was read
	silent atomic.Bool  // reading has ended
	queued atomic.Int64 // bytes in out
}

// mostQueued bounds the messages waiting to be written, and limit.File their bytes. Either is
// reached only if the server asks without end and does not read the answers.
const mostQueued = 256

func newChild(s *Server) *child {
	c := &child{server: s, done: make(chan struct{}), out: make(chan []byte, mostQueued)}
	c.closing = sync.OnceFunc(func() { close(c.done) })
	return c
}

// Connect starts the process.
func (c *child) Connect(context.Context) (sdk.Connection, error) {
	o := c.server.o
	if info, err := os.Stat(o.Dir); o.Dir != "" && (err != nil || !info.IsDir()) {
		return nil, awayf("the folder %s for it is not there; create it, or name another as dir", o.Dir)
	}
	started, err := program.Start(program.Options{Command: o.Command, Dir: o.Dir, Env: o.Env})
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return nil, awayf("%s is not installed; install it, or give its whole path as command", c.server.where())
	case err != nil:
		return nil, awayf("%s cannot be started: %w", c.server.where(), err)
	}
	c.program = started
	c.lines.from(started)
	c.server.wg.Go(c.write)
	c.server.wg.Go(c.watch)
	return c, nil
}

// watch stops the process when the connection has ended, and the connection when the
// process has.
func (c *child) watch() {
	select {
	case <-c.done:
	case <-c.program.Done():
	}
	if !c.silent.Load() { // else it may be about to end by itself, and is stopped if not
		c.program.Terminate()
	}
	<-c.program.Done()
	c.closing()
}

// exitError waits for the end of the process, and returns an error if it ended by itself.
func (c *child) exitError() error {
	if c.program == nil {
		return nil
	}
	how, asked := c.program.How()
	if asked {
		return nil
	}
	if c.spoke.Load() {
		return awayf("%s has ended (%s)", c.server.where(), how)
	}
	return awayf("%s ended at once (%s); run it by hand to see why, and see that its arguments make it an MCP server", c.server.where(), how)
}

// Read returns the next message of the protocol.
func (c *child) Read(context.Context) (jsonrpc.Message, error) {
	m, err := c.lines.next()
	if err != nil {
		c.silent.Store(true)
		c.program.Silent()
		if !errors.Is(err, errNoMCP) {
			err = io.EOF
		}
		return nil, err
	}
	c.spoke.Store(true)
	return m, nil
}

// Write queues a message. It does not wait for a process that does not read.
func (c *child) Write(_ context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	select {
	case <-c.done:
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
	c.closing() // further requests would never complete
	return errNotReading
}

// write writes queued messages until the end of the connection or of the process. In
// the latter case the reader fails the pending calls.
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

// Close starts stopping the process.
func (c *child) Close() error {
	c.closing()
	return nil
}

// SessionID returns "": there are no session ids over standard input and output.
func (*child) SessionID() string { return "" }
