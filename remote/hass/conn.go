package hass

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"time"

	"perch/remote"
	"perch/socket"
)

// Limits of a connection.
const (
	maxMessage      = 2 << 20 // bytes in a message; a tool's response about a large home has about 100 kB
	maxPendingBytes = 2 << 20 // bytes of unread responses to one command
	maxPending      = 8192    // number of unread responses to one command
	maxQueued       = 16      // messages in the send queue
	maxPerSecond    = 1000    // messages received per second
)

// Conn is an authenticated WebSocket to Home Assistant. It is safe for concurrent use.
type Conn struct {
	client  *Client
	ws      *socket.Conn
	release func() bool // stops watching client.life
	wg      sync.WaitGroup
	out     chan outgoing
	wake    chan struct{} // receives a value when abandoned may have changed
	done    chan struct{} // closed once err is set

	mu           sync.Mutex
	err          error              // reason for the end of the connection; nil while it is open
	lastID       int                // ID of the latest command
	open         map[int]*responses // commands whose responses are still awaited; key: ID of the command
	abandoned    []int              // IDs of subscriptions to be ended
	lastReceived time.Time          // arrival of the latest message
}

// outgoing is a message to be sent: a command, or a piece of sound.
type outgoing struct {
	command map[string]any
	to      *responses // receives the responses; nil if no response is expected
	sound   []byte     // handler ID and sound; nil for a command
}

// responses receives the messages that Home Assistant sends in response to one command.
type responses struct {
	conn *Conn
	news chan struct{} // holds a value if queue or err has changed

	// Guarded by Conn.mu:
	id     int        // ID of the command; 0 until the command is sent
	queue  []incoming // unread messages
	size   int        // bytes in queue
	err    error      // reason why no more messages are accepted
	closed bool
}

// incoming is one message from Home Assistant.
type incoming struct {
	size    int             // in bytes
	ID      int             `json:"id"`
	Type    string          `json:"type"`
	Success bool            `json:"success"`
	Result  json.RawMessage `json:"result"`
	Event   json.RawMessage `json:"event"`
	Error   struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// Dial connects and authenticates, both together within Options.ConnectWithin. The error is a
// *Fault, or ctx.Err() if ctx has ended.
func (c *Client) Dial(ctx context.Context) (*Conn, error) {
	within, cancel := context.WithTimeout(ctx, c.o.ConnectWithin)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	ws, err := socket.Dial(within, c.socketURL(), socket.Options{MaxMessage: maxMessage, SendWithin: c.o.ConnectWithin,
		PerSecond: maxPerSecond})
	if err == nil {
		stop := context.AfterFunc(within, ws.Drop)
		err = c.login(ws)
		if !stop() && err == nil {
			err = within.Err()
		}
		if err != nil {
			ws.Drop()
		}
	}
	var fault *Fault
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case c.life.Err() != nil:
		return nil, c.closed()
	case within.Err() != nil:
		return nil, c.unreached(within.Err())
	case errors.As(err, &fault):
		return nil, fault
	default:
		return nil, c.unreached(err)
	}
	conn := &Conn{client: c, ws: ws, out: make(chan outgoing, maxQueued), wake: make(chan struct{}, 1), done: make(chan struct{}),
		open: map[int]*responses{}, lastReceived: time.Now()}
	conn.release = context.AfterFunc(c.life, func() { conn.finish(c.closed()) })
	conn.wg.Go(conn.read)
	conn.wg.Go(conn.write)
	return conn, nil
}

// login authenticates. It expects auth_required, sends auth, and expects auth_ok.
func (c *Client) login(ws *socket.Conn) error {
	for _, want := range []string{"auth_required", "auth_ok"} {
		text, data, err := ws.Receive()
		if err != nil {
			return c.lost(err)
		}
		var m incoming
		switch err := json.Unmarshal(data, &m); {
		case !text, err != nil:
			return c.fault(remote.CodeOdd, "does not greet as Home Assistant does; check the url")
		case m.Type == "auth_invalid":
			return c.tokenRefused()
		case m.Type != want:
			return c.fault(remote.CodeOdd, "greets with %q instead of %s; check the url", c.Quote(m.Type), want)
		case want == "auth_ok":
			return nil
		}
		auth, _ := json.Marshal(map[string]string{"type": "auth", "access_token": c.o.Token}) // cannot fail for strings
		if err := ws.SendText(auth); err != nil {
			return c.lost(err)
		}
	}
	return nil
}

// Close closes the connection and cancels running calls. It must be called even if the
// connection has already ended, and may be called more than once.
func (c *Conn) Close() {
	c.release()
	c.finish(c.client.closed())
	c.wg.Wait()
}

// Err returns the reason for the end of the connection, or nil while it is open.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Quiet returns the time since the latest message arrived, or since Dial if none has arrived.
func (c *Conn) Quiet() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.lastReceived)
}

// finish ends the connection, unless it has already ended. reason becomes the result of Err.
func (c *Conn) finish(reason error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = reason
		close(c.done)
	}
	c.mu.Unlock()
	if first {
		c.ws.Drop()
	}
}

// read receives messages until the connection ends.
func (c *Conn) read() {
	for {
		text, data, err := c.ws.Receive()
		if err != nil {
			c.finish(c.client.lost(err))
			return
		}
		if !text {
			continue // Home Assistant sends only text messages
		}
		var m incoming
		if err := json.Unmarshal(data, &m); err != nil {
			c.finish(c.client.fault(remote.CodeOdd, "sent something that is not part of its API; is there a proxy in between?"))
			return
		}
		c.deliver(m, len(data))
	}
}

// deliver queues a message of size bytes for the command that it responds to. If too much is unread,
// deliver replaces all unread messages of the command with an error. deliver never blocks.
func (c *Conn) deliver(m incoming, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastReceived = time.Now()
	r := c.open[m.ID]
	if r == nil || r.err != nil {
		return // the command is unknown or closed, or too much was unread before
	}
	m.size = size
	if r.size += size; r.size > maxPendingBytes || len(r.queue) == maxPending {
		r.err = c.client.fault(remote.CodeOdd, "sends more text than can be spoken; check its conversation agent")
		r.queue = nil
	} else {
		r.queue = append(r.queue, m)
	}
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// write sends queued messages until the connection ends.
func (c *Conn) write() {
	for {
		var err error
		select {
		case <-c.done:
			return
		case <-c.wake:
			err = c.unsubscribe()
		case m := <-c.out:
			err = c.transmit(m)
		}
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = c.client.fault(remote.CodeLost, "accepted no data for %s; is it overloaded?", c.client.o.ConnectWithin)
			} else {
				err = c.client.lost(io.EOF) // the connection has ended, before read has noticed the end
			}
			c.finish(err)
			return
		}
	}
}

// unsubscribe ends the abandoned subscriptions.
func (c *Conn) unsubscribe() error {
	c.mu.Lock()
	abandoned := c.abandoned
	c.abandoned = nil
	c.mu.Unlock()
	for _, id := range abandoned {
		if err := c.transmit(outgoing{command: map[string]any{"type": "unsubscribe_events", "subscription": id}}); err != nil {
			return err
		}
	}
	return nil
}

// transmit sends a message, unless it is a command whose responses were closed. transmit assigns the
// ID of a command, because Home Assistant requires that commands arrive in the order of their IDs.
func (c *Conn) transmit(m outgoing) error {
	if m.sound != nil {
		return c.ws.SendBinary(m.sound)
	}
	c.mu.Lock()
	if m.to != nil && m.to.closed {
		c.mu.Unlock()
		return nil
	}
	c.lastID++
	id := c.lastID
	if m.to != nil {
		m.to.id = id
		c.open[id] = m.to
	}
	c.mu.Unlock()
	m.command["id"] = id
	text, err := json.Marshal(m.command)
	if err != nil {
		return fmt.Errorf("encode a command: %w", err)
	}
	return c.ws.SendText(text)
}

// queue passes a message to the goroutine that runs write. It waits while the send queue is full. The
// error is Conn.Err if the connection has ended, or context.Cause(ctx) if ctx has ended.
func (c *Conn) queue(ctx context.Context, m outgoing) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case <-c.done:
		return c.Err()
	default:
	}
	select {
	case c.out <- m:
		return nil
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sendCommand queues a command and returns its responses, which the caller must close. It returns the
// same errors as queue.
func (c *Conn) sendCommand(ctx context.Context, command string, fields map[string]any) (*responses, error) {
	message := maps.Clone(fields)
	if message == nil {
		message = map[string]any{}
	}
	message["type"] = command
	r := &responses{conn: c, news: make(chan struct{}, 1)}
	if err := c.queue(ctx, outgoing{command: message, to: r}); err != nil {
		return nil, err
	}
	return r, nil
}

// next waits for the next message. After the end of the connection it first returns the unread
// messages, and then the reason for the end.
func (r *responses) next(ctx context.Context) (incoming, error) {
	for {
		if ctx.Err() != nil {
			return incoming{}, context.Cause(ctx)
		}
		m, ok, err := r.pop()
		if ok || err != nil {
			return m, err
		}
		select {
		case <-r.news:
		case <-r.conn.done:
		case <-ctx.Done():
		}
	}
}

// pop removes and returns the first unread message. ok is false if no message is unread; err is then
// nil if more messages may arrive.
func (r *responses) pop() (m incoming, ok bool, err error) {
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(r.queue) == 0 {
		if r.err != nil {
			return m, false, r.err
		}
		return m, false, c.err
	}
	m = r.queue[0]
	r.size -= m.size
	if r.queue = r.queue[1:]; len(r.queue) == 0 {
		r.queue = nil // frees the array, which has room for all messages since the queue was last empty
	}
	return m, true, nil
}

// close discards unread and further messages. If subscribed is set, the command is a subscription,
// such as a run of a pipeline; close then also ends the subscription in Home Assistant.
func (r *responses) close(subscribed bool) {
	c := r.conn
	c.mu.Lock()
	if subscribed && !r.closed && r.id != 0 && c.err == nil {
		// abandoned has no maximum length, so that close never blocks. abandoned stays short,
		// because the connection ends if a write takes longer than Options.ConnectWithin.
		c.abandoned = append(c.abandoned, r.id)
	}
	r.closed, r.queue = true, nil
	delete(c.open, r.id)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Call sends a command and decodes the result into result, which may be nil. within bounds the whole
// call. The error is a *Fault, with Home Assistant's code if Home Assistant refused the command, or
// context.Cause(ctx) if ctx has ended.
func (c *Conn) Call(ctx context.Context, within time.Duration, command string, fields map[string]any, result any) error {
	limited, cancel := context.WithTimeoutCause(ctx, within, c.client.TimeoutFault(within))
	defer cancel()
	r, err := c.sendCommand(limited, command, fields)
	if err != nil {
		return err
	}
	defer r.close(false)
	m, err := r.next(limited)
	switch {
	case err != nil:
		return err
	case m.Type == "pong" && command == "ping":
		return nil
	case m.Type != "result":
		return c.client.fault(remote.CodeOdd, "answers %s with %q; check the url", command, c.client.Quote(m.Type))
	case !m.Success:
		return c.client.refused(m.Error.Code, m.Error.Message)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return c.client.fault(remote.CodeOdd, "answers %s with something that is not part of its API; its version may be too old or too new", command)
	}
	return nil
}

// Ping checks that Home Assistant responds within the given time. It returns the same errors as Call.
func (c *Conn) Ping(ctx context.Context, within time.Duration) error {
	return c.Call(ctx, within, "ping", nil, nil)
}
