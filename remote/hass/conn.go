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
	mostMessage   = 2 << 20 // bytes; a tool's answer about a large home has some 100 kB
	mostWaiting   = 2 << 20 // bytes of answers waiting for one caller
	mostAnswers   = 8192    // number of answers waiting for one caller
	mostQueued    = 16      // messages to be sent
	mostPerSecond = 1000    // messages read per second
)

// Conn is an authenticated WebSocket to Home Assistant. It is safe for concurrent use.
type Conn struct {
	client  *Client
	ws      *socket.Conn
	release func() bool
	wg      sync.WaitGroup
	out     chan outgoing
	wake    chan struct{} // has one element if left is not empty
	done    chan struct{} // closed when err is set

	mu   sync.Mutex
	err  error // why it is closed
	last int   // id
	open map[int]*answers
	left []int     // subscriptions to be ended
	used time.Time // when something last arrived
}

// outgoing is a message to be sent: a command, or a piece of sound.
type outgoing struct {
	command map[string]any
	to      *answers // nil: no answer is expected
	sound   []byte
}

// answers are the messages for one command.
type answers struct {
	conn *Conn
	some chan struct{} // has one element if there is news
	// The rest is guarded by Conn.mu.
	id     int // 0 until the command was sent
	queue  []incoming
	size   int
	over   error
	closed bool
}

// incoming is one message from Home Assistant.
type incoming struct {
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

// Dial connects and authenticates, within Options.ConnectWithin. The error is a *Fault, or
// ctx's if that has ended.
func (c *Client) Dial(ctx context.Context) (*Conn, error) {
	within, cancel := context.WithTimeout(ctx, c.o.ConnectWithin)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	ws, err := socket.Dial(within, c.socketURL(), socket.Options{MaxMessage: mostMessage, SendWithin: c.o.ConnectWithin,
		PerSecond: mostPerSecond})
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
	var known *Fault
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case c.life.Err() != nil:
		return nil, c.closed()
	case within.Err() != nil:
		return nil, c.unreached(within.Err())
	case errors.As(err, &known):
		return nil, known
	default:
		return nil, c.unreached(err)
	}
	conn := &Conn{client: c, ws: ws, out: make(chan outgoing, mostQueued), wake: make(chan struct{}, 1), done: make(chan struct{}),
		open: map[int]*answers{}, used: time.Now()}
	conn.release = context.AfterFunc(c.life, func() { conn.finish(c.closed()) })
	conn.wg.Go(conn.read)
	conn.wg.Go(conn.write)
	return conn, nil
}

// login authenticates: auth_required, auth, auth_ok.
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
			return c.token()
		case m.Type != want:
			return c.fault(remote.CodeOdd, "greets with %q in place of %s; check the url", c.Quote(m.Type), want)
		case want == "auth_ok":
			return nil
		}
		auth, _ := json.Marshal(map[string]string{"type": "auth", "access_token": c.o.Token}) // strings cannot fail
		if err := ws.SendText(auth); err != nil {
			return c.lost(err)
		}
	}
	return nil
}

// Close closes the connection and cancels its calls. It must be called even if the
// connection has ended by itself, and may be called more than once.
func (c *Conn) Close() {
	c.release()
	c.finish(c.client.closed())
	c.wg.Wait()
}

// Err returns why the connection has ended, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Quiet returns how long nothing has arrived.
func (c *Conn) Quiet() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.used)
}

// finish ends the connection with a cause, unless it has ended already.
func (c *Conn) finish(why error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = why
		close(c.done)
	}
	c.mu.Unlock()
	if first {
		c.ws.Drop()
	}
}

func (c *Conn) read() {
	for {
		text, data, err := c.ws.Receive()
		if err != nil {
			c.finish(c.client.lost(err))
			return
		}
		if !text {
			continue // Home Assistant sends no sound
		}
		var m incoming
		if err := json.Unmarshal(data, &m); err != nil {
			c.finish(c.client.fault(remote.CodeOdd, "sent something that is not of its API; is there a proxy before it?"))
			return
		}
		c.deliver(m, len(data))
	}
}

func (c *Conn) deliver(m incoming, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = time.Now()
	a := c.open[m.ID]
	if a == nil || a.over != nil {
		return // its caller has gone
	}
	if a.size += size; a.size > mostWaiting || len(a.queue) == mostAnswers {
		a.over = c.client.fault(remote.CodeOdd, "says more than can be spoken; see which agent does that")
		a.queue = nil
	} else {
		a.queue = append(a.queue, m)
	}
	select {
	case a.some <- struct{}{}:
	default:
	}
}

func (c *Conn) write() {
	for {
		var err error
		select {
		case <-c.done:
			return
		case <-c.wake:
			err = c.leave()
		case it := <-c.out:
			err = c.transmit(it)
		}
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = c.client.fault(remote.CodeLost, "took nothing for %s; is it overloaded?", c.client.o.ConnectWithin)
			} else {
				err = c.client.lost(io.EOF) // not found by the reader yet
			}
			c.finish(err)
			return
		}
	}
}

// leave ends the subscriptions whose callers have gone.
func (c *Conn) leave() error {
	c.mu.Lock()
	left := c.left
	c.left = nil
	c.mu.Unlock()
	for _, id := range left {
		if err := c.transmit(outgoing{command: map[string]any{"type": "unsubscribe_events", "subscription": id}}); err != nil {
			return err
		}
	}
	return nil
}

// transmit sends a message. It assigns the id, because Home Assistant requires ids to increase in
// the order of arrival.
func (c *Conn) transmit(it outgoing) error {
	if it.sound != nil {
		return c.ws.SendBinary(it.sound)
	}
	c.mu.Lock()
	if it.to != nil && it.to.closed {
		c.mu.Unlock()
		return nil
	}
	c.last++
	id := c.last
	if it.to != nil {
		it.to.id = id
		c.open[id] = it.to
	}
	c.mu.Unlock()
	it.command["id"] = id
	text, err := json.Marshal(it.command)
	if err != nil {
		return fmt.Errorf("write a command: %w", err)
	}
	return c.ws.SendText(text)
}

// queue passes a message to the writer.
func (c *Conn) queue(ctx context.Context, it outgoing) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case <-c.done:
		return c.Err()
	default:
	}
	select {
	case c.out <- it:
		return nil
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask sends a command. Its result must be closed.
func (c *Conn) ask(ctx context.Context, command string, fields map[string]any) (*answers, error) {
	whole := maps.Clone(fields)
	if whole == nil {
		whole = map[string]any{}
	}
	whole["type"] = command
	a := &answers{conn: c, some: make(chan struct{}, 1)}
	if err := c.queue(ctx, outgoing{command: whole, to: a}); err != nil {
		return nil, err
	}
	return a, nil
}

// next waits for the next message. It returns all messages before the connection's error.
func (a *answers) next(ctx context.Context) (incoming, error) {
	for {
		if ctx.Err() != nil {
			return incoming{}, context.Cause(ctx)
		}
		m, there, err := a.pop()
		if there || err != nil {
			return m, err
		}
		select {
		case <-a.some:
		case <-a.conn.done:
		case <-ctx.Done():
		}
	}
}

func (a *answers) pop() (m incoming, there bool, err error) {
	c := a.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(a.queue) == 0 {
		if a.over != nil {
			return m, false, a.over
		}
		return m, false, c.err
	}
	m = a.queue[0]
	a.size -= len(m.Event) + len(m.Result)
	if a.queue = a.queue[1:]; len(a.queue) == 0 {
		a.queue, a.size = nil, 0
	}
	return m, true, nil
}

// close stops waiting. A subscription is also ended in Home Assistant, which cancels a
// running pipeline.
func (a *answers) close(subscribed bool) {
	c := a.conn
	c.mu.Lock()
	if subscribed && !a.closed && a.id != 0 && c.err == nil {
		// A separate queue, which never blocks the caller. It is bounded by the number
		// of runs: a stuck writer ends the connection.
		c.left = append(c.left, a.id)
	}
	a.closed, a.queue = true, nil
	delete(c.open, a.id)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Call sends a command and decodes its result into result, which may be nil. The error is a
// *Fault, with Home Assistant's code if it refused, or ctx's if that has ended.
func (c *Conn) Call(ctx context.Context, within time.Duration, command string, fields map[string]any, result any) error {
	limited, cancel := context.WithTimeoutCause(ctx, within, c.client.Silent(within))
	defer cancel()
	a, err := c.ask(limited, command, fields)
	if err != nil {
		return err
	}
	defer a.close(false)
	m, err := a.next(limited)
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
		return c.client.fault(remote.CodeOdd, "answers %s with something that is not of its API; it may be too old, or too new", command)
	}
	return nil
}

// Ping checks that Home Assistant answers.
func (c *Conn) Ping(ctx context.Context, within time.Duration) error {
	return c.Call(ctx, within, "ping", nil, nil)
}
