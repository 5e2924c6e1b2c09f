package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"

	"perch/agent"
	"perch/remote"
)

// maxQueued is the maximum number of messages waiting to be written. An agent reaches it
// only if it sends requests without end and does not read the responses.
const maxQueued = 256

// Reasons for closing a connection.
var (
	errClosed     = fmt.Errorf("%w: it was closed", agent.ErrAway)
	errNotReading = fmt.Errorf("%w: the agent does not read its messages", agent.ErrAway)
)

// conn is a connection to an agent, over any transport.
type conn struct {
	log   *slog.Logger
	out   chan []byte   // encoded messages to be written
	done  chan struct{} // closed when the connection has ended
	onEnd func(error)   // called once with the reason for the end, before the pending calls fail

	malformed sync.Once // logs the first malformed message

	// Capabilities of the agent, set before the first session is opened.
	old      bool // uses the older dialect
	canClose bool // supports session/close
	mcp      bool // supports MCP over HTTP
	images   bool // accepts pictures in prompts

	mu       sync.Mutex
	endErr   error                                  // why the connection has ended; nil while it is open
	lastID   int64                                  // ID of the latest request
	pending  map[int64]func(json.RawMessage, error) // callbacks of requests without a response; key: request ID
	sessions map[string]*session                    // open sessions; key: session ID
	ignored  bool                                   // whether the agent ignored a cancel; the agent is then stopped after its last running turn
}

// newConn returns an open connection that logs to log and calls onEnd at its end.
func newConn(log *slog.Logger, onEnd func(error)) *conn {
	return &conn{log: log, out: make(chan []byte, maxQueued), done: make(chan struct{}), onEnd: onEnd,
		pending: map[int64]func(json.RawMessage, error){}, sessions: map[string]*session{}}
}

// shutdown closes the connection for the reason err, unless it is already closed. It closes
// the endpoints of the sessions, and ends the pending requests with err.
func (c *conn) shutdown(err error) {
	c.mu.Lock()
	if c.endErr != nil {
		c.mu.Unlock()
		return
	}
	c.endErr = err
	pending := c.pending
	c.pending = nil
	sessions := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()
	for _, s := range sessions {
		s.closeEndpoint()
	}
	c.onEnd(err)
	close(c.done)
	for _, callback := range pending {
		callback(nil, err)
	}
}

// err returns the reason for the end of the connection, or nil while it is open.
func (c *conn) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endErr
}

// write writes the queued messages to w until the connection ends.
func (c *conn) write(w io.Writer) {
	for {
		select {
		case line := <-c.out:
			if _, err := w.Write(line); err != nil {
				return // the connection is closed when the agent's output or process ends
			}
		case <-c.done:
			return
		}
	}
}

// read handles the messages of the agent until the end of its output.
func (c *conn) read(r io.Reader) {
	lines := remote.Lines{R: bufio.NewReaderSize(r, 64<<10), MaxBytes: maxLine, Ends: 1}
	for {
		line, err := lines.Next()
		line = bytes.TrimSpace(line)
		switch {
		case errors.Is(err, remote.ErrTooLong):
			c.logMalformed(err.Error())
		case err != nil:
			return
		case len(line) > 0:
			c.handleLine(line)
		}
	}
}

// handleLine handles one line of the agent's output.
func (c *conn) handleLine(line []byte) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		c.logMalformed("it is not a JSON object with the fields of a message")
		return
	}
	switch {
	case m.Method != "" && m.hasID():
		c.handleRequest(m)
	case m.Method != "":
		c.handleNotification(m)
	case m.hasID():
		c.handleResponse(m)
	default:
		c.logMalformed("it has neither a method nor an id")
	}
}

// logMalformed logs the first malformed message.
func (c *conn) logMalformed(reason string) {
	c.malformed.Do(func() {
		c.log.Warn("the agent wrote a line that is not a message of the protocol; such lines are ignored", "err", reason)
	})
}

// handleResponse passes a response of the agent to the callback of its request.
func (c *conn) handleResponse(m message) {
	id, err := strconv.ParseInt(string(bytes.Trim(m.ID, `"`)), 10, 64) // some agents return the number as a string
	c.mu.Lock()
	callback := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	switch {
	case err != nil || callback == nil:
		c.logMalformed("it is a response without a request")
	case m.Error != nil:
		callback(nil, m.Error)
	default:
		callback(m.Result, nil)
	}
}

// handleRequest handles a request of the agent. It supports only requests for permission,
// because initialize offers neither files nor terminals. A request for permission outside of
// a turn, or that the turn's inbox has no room for, is answered with "cancelled",
// or in the older dialect as not approved.
func (c *conn) handleRequest(m message) {
	if m.Method != "session/request_permission" {
		c.send(message{ID: m.ID, Error: &rpcError{Code: codeNoMethod, Message: "method not found"}})
		return
	}
	p, err := parsePermission(m)
	if err != nil {
		c.send(message{ID: m.ID, Error: &rpcError{Code: codeBadParams, Message: err.Error()}})
		return
	}
	if in := c.inbox(p.session); in == nil || !in.enqueue(p) {
		c.sendDecision(p, cancelled)
	}
}

// handleNotification handles a notification of the agent.
func (c *conn) handleNotification(m message) {
	var session string
	var it item
	var err error
	switch m.Method {
	case "session/update":
		session, it, err = parseUpdate(m.Params)
	case "session/event":
		session, it, err = parseEvent(m.Params)
	default:
		return // a notification of an extension
	}
	if err != nil {
		c.logMalformed(err.Error())
		return
	}
	if in := c.inbox(session); in != nil && it != nil {
		in.enqueue(it)
	}
}

// inbox returns the inbox of the turn that runs in the session with this ID, or nil.
func (c *conn) inbox(session string) *inbox {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[session]; s != nil {
		return s.inbox
	}
	return nil
}

// call sends a request. callback is called once, possibly before call returns: with the
// result or the error of the response or, if the connection ends before, with the reason for
// the end. callback must not block. If call returns an error, the request is not sent and
// callback is not called.
func (c *conn) call(method string, params any, callback func(json.RawMessage, error)) error {
	c.mu.Lock()
	if c.endErr != nil {
		c.mu.Unlock()
		return c.endErr
	}
	c.lastID++
	id := c.lastID
	c.pending[id] = callback
	c.mu.Unlock()
	c.send(message{ID: json.RawMessage(fmt.Sprint(id)), Method: method, Params: encode(params)})
	return nil
}

// send queues a message. If the queue is full, it closes the connection.
func (c *conn) send(m message) {
	m.Version = "2.0"
	line := append(encode(m), '\n')
	select {
	case c.out <- line:
	case <-c.done:
	default:
		c.shutdown(errNotReading)
	}
}

// encode marshals a message or its parameters. It panics if v cannot be marshalled.
func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
