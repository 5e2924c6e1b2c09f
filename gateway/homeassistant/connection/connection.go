package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"perch/gateway/homeassistant/topic"
)

// Pauses and time limits of a connection.
const (
	minRetryPause   = time.Second
	maxRetryPause   = 30 * time.Second
	farewellTimeout = 2 * time.Second // for publishing the last message when the appliance stops
)

// Status describes the connection to the broker.
type Status struct {
	Connected  bool      `json:"connected"`  // the appliance is connected and publishes
	Connecting bool      `json:"connecting"` // the first attempt to connect has not ended yet
	Broker     string    `json:"broker"`     // address without user and password, or "embedded" or "none"
	Since      time.Time `json:"since"`      // when Connected changed last
	Cause      error     `json:"-"`          // why the appliance is not connected: a sentence with the remedy; nil while connected

	// EndCount and the following fields describe the embedded broker, which is restarted when it ends.

	EndCount     int       `json:"ends,omitempty"` // how often the broker has ended
	LastEnd      time.Time `json:"ended,omitzero"` // when the broker ended last
	LastEndCause error     `json:"-"`              // why the broker ended last
}

// Connection keeps the appliance connected to a broker. It publishes the messages of the outbox, passes received
// messages to Arrived, and publishes nothing while another appliance uses the same base topic.
type Connection struct {
	Out *Outbox // the messages to publish
	// Arrived receives commands, requests, and Home Assistant's birth message.
	Arrived chan Incoming
	// Dial connects to the broker. Its error is a sentence with the cause and the remedy, and without any
	// password. Tests may replace it before Run.
	Dial func(context.Context, Session) (Link, error)

	topics  topic.Names
	rivals  *rivals
	log     *slog.Logger
	keepOff bool // another appliance uses the topics, so the next connection has no will and no stored session

	embedded *embeddedBroker // nil if the embedded broker is never used
	start    chan struct{}   // closed to start the embedded broker

	mu     sync.Mutex
	status Status
}

// New returns a connection, which does nothing until Run is called. The error names the setting to correct.
func New(o Options) (*Connection, error) {
	client, shown, err := o.client()
	if err != nil {
		return nil, err
	}
	c := &Connection{
		Out: NewOutbox(), Arrived: make(chan Incoming), Dial: client.dial, topics: o.Topics(),
		rivals: newRivals(o.ID, o.Started), log: o.Log, start: make(chan struct{}),
		status: Status{Connecting: true, Broker: shown, Since: time.Now(), Cause: errors.New("no connection to the broker was attempted yet")},
	}
	switch o.Broker {
	case "none":
		c.status.Connecting, c.status.Cause = false, errors.New("mqtt.broker is none")
	case "embedded":
		c.embedded = newEmbeddedBroker(o)
		c.Dial = c.embedded.dialer(client)
		close(c.start)
	case "supervisor":
		c.embedded = newEmbeddedBroker(o)
		c.Dial = c.askingDialer(o, c.embedded.dialer(client))
	}
	return c, nil
}

// Status returns the present status of the connection.
func (c *Connection) Status() Status {
	c.mu.Lock()
	s := c.status
	c.mu.Unlock()
	if c.embedded != nil {
		runs, _ := c.embedded.state()
		s.EndCount, s.LastEnd, s.LastEndCause = runs.ends, runs.ended, runs.why
	}
	return s
}

// setStatus records the status, and logs it if it has changed.
func (c *Connection) setStatus(connected bool, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status.Connected == connected && fmt.Sprint(c.status.Cause) == fmt.Sprint(cause) {
		return
	}
	if c.status.Connected != connected {
		c.status.Since = time.Now()
	}
	c.status.Connected, c.status.Connecting, c.status.Cause = connected, false, cause
	if connected {
		c.log.Info("MQTT is connected", "broker", c.status.Broker)
	} else {
		c.log.Warn("MQTT is disconnected", "broker", c.status.Broker, "err", cause)
	}
}

// setBroker records the address of Home Assistant's broker.
func (c *Connection) setBroker(broker string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Broker = broker
}

// askingDialer returns a function that asks FindBroker for the address of Home Assistant's broker and connects to that
// broker. If Home Assistant has no broker, the function starts the embedded one and uses it until the program ends.
func (c *Connection) askingDialer(o Options, embedded func(context.Context, Session) (Link, error)) func(context.Context, Session) (Link, error) {
	started := false
	return func(ctx context.Context, s Session) (Link, error) {
		if started {
			return embedded(ctx, s)
		}
		address, user, password, err := o.FindBroker(ctx)
		if err != nil {
			return nil, cmp.Or(ctx.Err(), fmt.Errorf("the MQTT broker of Home Assistant could not be found: %w", err))
		}
		if address == "" {
			started = true
			close(c.start)
			c.setBroker("embedded")
			return embedded(ctx, s)
		}
		o.Broker, o.User, o.Password = address, user, password
		client, shown, err := o.client()
		if err != nil {
			return nil, err
		}
		c.setBroker(shown)
		return client.dial(ctx, s)
	}
}

// Run keeps the appliance connected until ctx ends, and then publishes that the bridge is offline. It stops the
// embedded broker last.
func (c *Connection) Run(ctx context.Context) {
	var broker sync.WaitGroup
	brokerCtx, stopBroker := context.WithCancel(context.WithoutCancel(ctx))
	defer broker.Wait()
	defer stopBroker()
	if c.embedded != nil {
		broker.Go(func() {
			select {
			case <-c.start:
				c.embedded.run(brokerCtx)
			case <-brokerCtx.Done():
			}
		})
	}
	for wait := minRetryPause; ctx.Err() == nil; wait = min(2*wait, maxRetryPause) {
		began, keptOff := time.Now(), c.keepOff
		err := c.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		if keptOff && !c.keepOff && err == nil {
			wait = minRetryPause / 2 // the loop doubles it
			continue                 // the topics are free, so connect again with a will
		}
		if err != nil {
			c.setStatus(false, err)
		}
		if time.Since(began) > stableAfter {
			wait = minRetryPause
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = Status{Broker: c.status.Broker, Since: time.Now(), Cause: errors.New("the appliance is stopping")}
}

// offline returns the message that says that the bridge is offline. It is published last, and is also the will.
func (c *Connection) offline() Message {
	return Message{Topic: c.topics.Bridge("status"), Payload: []byte("offline"), Retained: true, QoS: 1}
}

// connect makes a connection and uses it until the connection or ctx ends. If another appliance uses the topics, connect
// publishes nothing and returns an error, and the next connection has no will. If a connection without a will finds that
// the topics have become free, connect returns nil.
func (c *Connection) connect(ctx context.Context) error {
	c.rivals.reset()
	s := Session{Clean: c.keepOff}
	if !c.keepOff {
		s.Will = new(c.offline())
	}
	l, in, err := c.dial(ctx, s, c.topics.Birth())
	switch {
	case l == nil:
		return err
	case err != nil:
	case !c.rivals.claim(time.Now()):
		c.keepOff, err = true, c.rivals.conflictError(c.topics.Base)
	case c.keepOff:
		c.keepOff = false
	default:
		if err = l.Subscribe(1, c.topics.Commands()...); err == nil {
			return c.serve(ctx, l, in)
		}
	}
	l.Close()
	return err
}

// arrivals holds the received messages of one connection that have not been handled.
type arrivals struct {
	bridge   chan Incoming // messages on bridge/info and bridge/status
	commands chan Incoming // all other messages; they are not handled before the topics are claimed
}

// dial makes a connection, subscribes to bridge/info, bridge/status and other topics, and then handles messages on
// bridge/info and bridge/status for rivalWait, to detect another appliance. If an error occurs once the connection is
// open, dial also returns the link, which the caller has to close.
func (c *Connection) dial(ctx context.Context, s Session, others ...string) (Link, arrivals, error) {
	in := arrivals{make(chan Incoming, maxArrived), make(chan Incoming, maxArrived)}
	info, status := c.topics.Bridge("info"), c.topics.Bridge("status")
	s.Receive = func(m Incoming) bool {
		queue := in.commands
		if m.Topic == info || m.Topic == status {
			queue = in.bridge
		}
		select {
		case queue <- m:
			return true
		default: // only a faulty or hostile program sends so many messages
			return false
		}
	}
	l, err := c.Dial(ctx, s)
	if err != nil {
		return nil, in, err
	}
	if err := l.Subscribe(0, append(others, info, status)...); err != nil {
		return l, in, err
	}
	for end := time.After(rivalWait); ; {
		select {
		case m := <-in.bridge:
			c.onBridgeMessage(m)
		case <-end:
			return l, in, nil
		case err := <-l.Lost():
			return l, in, lostError(err)
		case <-ctx.Done():
			return l, in, ctx.Err()
		}
	}
}

// onBridgeMessage handles a message on bridge/info or bridge/status. It reports whether there is a conflict with
// another appliance or program.
func (c *Connection) onBridgeMessage(m Incoming) bool {
	m.Ack()
	if m.Topic == c.topics.Bridge("info") {
		return c.rivals.onInfo(m.Payload)
	}
	return c.rivals.onStatus(string(m.Payload))
}

// serve publishes the messages of the outbox until the connection or ctx ends.
func (c *Connection) serve(ctx context.Context, l Link, in arrivals) error {
	c.setStatus(true, nil)
	c.Out.Open()
	p := newPublisher(c.Out, l, c.offline())
	go p.run()
	err := c.forward(ctx, p, l, in)
	p.cancel()
	l.Close()
	c.Out.Close(p.unconfirmed())
	return err
}

// forward passes received commands to Arrived and handles messages on bridge/info and bridge/status. When the connection
// has to end, forward returns the reason. When ctx ends, it first publishes that the bridge is offline.
func (c *Connection) forward(ctx context.Context, p *publisher, l Link, in arrivals) error {
	for {
		select {
		case <-p.done:
			return p.err
		case err := <-l.Lost():
			return lostError(err)
		case m := <-in.commands:
			select {
			case c.Arrived <- m:
			case <-ctx.Done(): // the message is not confirmed, so the broker delivers it again
			}
		case m := <-in.bridge:
			if c.onBridgeMessage(m) {
				if err := c.resolveConflict(); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			p.leave()
			timer := time.NewTimer(farewellTimeout)
			defer timer.Stop()
			select {
			case <-p.done:
			case <-l.Lost():
			case <-timer.C:
			}
			return ctx.Err()
		}
	}
}

// resolveConflict returns an error if another appliance takes precedence and so may use the topics. Otherwise it
// logs the other appliance, if there is one, and publishes the overwritten bridge/info and bridge/status again.
func (c *Connection) resolveConflict() error {
	other, precedes := c.rivals.takeConflict()
	switch {
	case precedes:
		c.keepOff = true
		return c.rivals.conflictError(c.topics.Base)
	case other != "":
		c.log.Warn("another appliance publishes under this MQTT base topic; give it another mqtt.base_topic", "base_topic", c.topics.Base,
			"appliance", other)
	}
	c.Out.Republish(c.topics.Bridge("info"), c.topics.Bridge("status"))
	return nil
}

// Probe returns an error if the broker cannot be reached, or if another appliance publishes under the base
// topic. If the embedded broker may be used, Probe checks only that its port can be opened. It publishes
// nothing, and must not be used while Run is running.
func (c *Connection) Probe(ctx context.Context) error {
	if c.embedded != nil {
		l, err := c.embedded.listenTCP()
		if err != nil {
			return err
		}
		return l.Close()
	}
	// The suffix is needed because the broker disconnects a client when another client uses the same client ID.
	l, _, err := c.dial(ctx, Session{Suffix: "-look", Clean: true})
	if l != nil {
		defer l.Close()
	}
	if err == nil && c.rivals.isOtherOnline() {
		err = c.rivals.conflictError(c.topics.Base)
	}
	return err
}
