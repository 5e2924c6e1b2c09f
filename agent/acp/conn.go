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

// mostQueued bounds the messages waiting to be written. It is reached only if the
// agent floods us with requests and does not read the answers.
const mostQueued = 256

// Reasons for ending a connection from this side.
var (
	errClosed     = fmt.Errorf("%w: it was closed", agent.ErrAway)
	errNotReading = fmt.Errorf("%w: the agent does not read its messages", agent.ErrAway)
)

// conn is a connection to an agent, over any transport.
type conn struct {
	log   *slog.Logger
	out   chan []byte
	done  chan struct{} // closed when it has ended
	ended func(error)   // called once, before the pending calls end

	malformed sync.Once // the first malformed message was logged

	// Capabilities from the agent's initialize result, before any session.
	old    bool // speaks the dialect from before the protocol
	closes bool // knows session/close
	mcp    bool // and MCP over HTTP

	mu       sync.Mutex
	over     error // why it ended; nil while it is open
	last     int64 // id given
	pending  map[int64]func(json.RawMessage, error)
	sessions map[string]*session
	ignored  bool // a cancel; ends with the last turn
}

func newConn(log *slog.Logger, ended func(error)) *conn {
	return &conn{log: log, out: make(chan []byte, mostQueued), done: make(chan struct{}), ended: ended,
		pending: map[int64]func(json.RawMessage, error){}, sessions: map[string]*session{}}
}

// shutdown ends the connection. Only the first reason counts.
func (c *conn) shutdown(why error) {
	c.mu.Lock()
	if c.over != nil {
		c.mu.Unlock()
		return
	}
	c.over = why
	pending := c.pending
	c.pending = nil
	sessions := slices.Collect(maps.Values(c.sessions))
	c.mu.Unlock()
	for _, s := range sessions {
		s.closeEndpoint()
	}
	c.ended(why)
	close(c.done)
	for _, then := range pending {
		then(nil, why)
	}
}

// why returns the reason it ended, or nil.
func (c *conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// write sends queued messages to the agent until the connection ends.
func (c *conn) write(w io.Writer) {
	for {
		select {
		case line := <-c.out:
			if _, err := w.Write(line); err != nil {
				return // the reader, or the process, has the reason
			}
		case <-c.done:
			return
		}
	}
}

// read handles the agent's messages until the end of its output.
func (c *conn) read(r io.Reader) {
	from := remote.Lines{R: bufio.NewReaderSize(r, 64<<10), Most: mostLine, Ends: 1}
	for {
		line, err := from.Next()
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
		c.logMalformed("it is no JSON object")
		return
	}
	switch {
	case m.Method != "" && m.identified():
		c.handleRequest(m)
	case m.Method != "":
		c.handleNotification(m)
	case m.identified():
		c.handleResponse(m)
	default:
		c.logMalformed("it has neither a method nor an id")
	}
}

// logMalformed logs the first malformed message.
func (c *conn) logMalformed(why string) {
	c.malformed.Do(func() { c.log.Warn("the agent writes what is not of the protocol; such lines are ignored", "err", why) })
}

// handleResponse handles a response of the agent.
func (c *conn) handleResponse(m message) {
	id, err := strconv.ParseInt(string(bytes.Trim(m.ID, `"`)), 10, 64) // some agents turn it into a string
	c.mu.Lock()
	then := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	switch {
	case err != nil || then == nil:
		c.logMalformed("it answers what was not asked")
	case m.Error != nil:
		then(nil, m.Error)
	default:
		then(m.Result, nil)
	}
}

// handleRequest handles a request of the agent. Only permissions are supported:
// initialize declared neither files nor terminals.
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
	if in := c.inboxOf(p.session); in == nil || !in.enqueue(p) {
		c.answer(p, cancelled)
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
		return // of an extension
	}
	if err != nil {
		c.logMalformed(err.Error())
		return
	}
	if in := c.inboxOf(session); in != nil && it != nil {
		in.enqueue(it)
	}
}

// inboxOf returns the inbox of the turn that runs in a session, or nil.
func (c *conn) inboxOf(session string) *inbox {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[session]; s != nil {
		return s.inbox
	}
	return nil
}

// call sends a request. then is called once, from the reading goroutine, and must not
// block; if the connection ends before the answer, it gets the reason.
func (c *conn) call(method string, params any, then func(json.RawMessage, error)) error {
	c.mu.Lock()
	if c.over != nil {
		c.mu.Unlock()
		return c.over
	}
	c.last++
	id := c.last
	c.pending[id] = then
	c.mu.Unlock()
	c.send(message{ID: json.RawMessage(fmt.Sprint(id)), Method: method, Params: encode(params)})
	return nil
}

// send queues a message. An agent that lets the queue fill up is stopped.
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

// encode marshals a value of this package, which cannot fail.
func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
