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

// Times of a connection.
const (
	firstRetry      = time.Second
	longestRetry    = 30 * time.Second
	farewellTimeout = 2 * time.Second
)

// Status is the condition of the connection to the broker.
type Status struct {
	Connected  bool      `json:"connected"`  // and publishing
	Connecting bool      `json:"connecting"` // the first attempt has yet to end
	Broker     string    `json:"broker"`     // address without user and password
	Since      time.Time `json:"since"`      // the last change of Connected
	Cause      error     `json:"-"`          // why it is not connected, in a sentence with its remedy

	// The embedded broker is restarted when it ends.

	Ends  int       `json:"ends,omitempty"` // how often it has ended
	Ended time.Time `json:"ended,omitzero"` // when it last did
	Why   error     `json:"-"`              // the reason
}

// Connection keeps the appliance connected: it dials, watches for other appliances under the same
// base topic, publishes the outbox, and passes on what arrives.
type Connection struct {
	Out *Outbox
	// Arrived receives commands, requests, and Home Assistant's birth message.
	Arrived chan Incoming
	// Dial connects to the broker. Its error is one sentence that names cause and remedy, and no
	// password. Tests may replace it before Run.
	Dial func(context.Context, Session) (Link, error)

	topics  topic.Names
	rivals  *rivals
	log     *slog.Logger
	keepOff bool // another appliance has the topics: connect without a will and without a stored session

	embedded *supervisor   // nil if the broker is another program's
	start    chan struct{} // is closed when the embedded broker is to run

	mu     sync.Mutex
	status Status
}

// New returns a connection that has yet to be run. Its error names the setting to correct.
func New(o Options) (*Connection, error) {
	client, shown, err := o.client()
	if err != nil {
		return nil, err
	}
	c := &Connection{
		Out: NewOutbox(), Arrived: make(chan Incoming), Dial: client.dial, topics: o.Topics(),
		rivals: newRivals(o.ID, o.Started), log: o.Log, start: make(chan struct{}),
		status: Status{Connecting: true, Broker: shown, Since: time.Now(), Cause: errors.New("the broker has yet to be tried")},
	}
	switch o.Broker {
	case "none":
		c.status.Connecting, c.status.Cause = false, errors.New("mqtt.broker is none")
	case "embedded":
		c.embedded = newSupervisor(o)
		c.Dial = c.embedded.dialer(client)
		close(c.start)
	case "supervisor":
		c.embedded = newSupervisor(o)
		c.Dial = c.askingDialer(o, c.embedded.dialer(client))
	}
	return c, nil
}

// Status returns the condition of the connection.
func (c *Connection) Status() Status {
	c.mu.Lock()
	s := c.status
	c.mu.Unlock()
	if c.embedded != nil {
		runs, _ := c.embedded.state()
		s.Ends, s.Ended, s.Why = runs.ends, runs.ended, runs.why
	}
	return s
}

// setStatus records the condition and logs a change once.
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

// setBroker records the address of the broker that Home Assistant has named.
func (c *Connection) setBroker(broker string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Broker = broker
}

// askingDialer returns a function that connects to Home Assistant's broker. If it has none, the
// embedded broker is started, and used until the program ends.
func (c *Connection) askingDialer(o Options, embedded func(context.Context, Session) (Link, error)) func(context.Context, Session) (Link, error) {
	started := false
	return func(ctx context.Context, s Session) (Link, error) {
		if started {
			return embedded(ctx, s)
		}
		address, user, password, err := o.Ask(ctx)
		if err != nil {
			return nil, cmp.Or(ctx.Err(), fmt.Errorf("which MQTT broker Home Assistant has is not known: %w", err))
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

// Run keeps connected until ctx ends, and then publishes that the bridge is offline. The embedded
// broker is stopped last.
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
	for wait := firstRetry; ctx.Err() == nil; wait = min(2*wait, longestRetry) {
		began, keptOff := time.Now(), c.keepOff
		err := c.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		if keptOff && !c.keepOff && err == nil {
			wait = firstRetry / 2
			continue // the topics are free: with a will now
		}
		if err != nil {
			c.setStatus(false, err)
		}
		if time.Since(began) > steadyAfter {
			wait = firstRetry
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

// offline returns the last message of the bridge. It is also the will.
func (c *Connection) offline() Message {
	return Message{Topic: c.topics.Bridge("status"), Payload: []byte("offline"), Retained: true, QoS: 1}
}

// connect makes one connection and uses it until it ends. While another appliance has the topics it
// publishes nothing, and leaves no will; it returns nil once they are free.
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
		c.keepOff, err = true, c.rivals.err(c.topics.Base)
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

// arrivals are the messages of one connection that have yet to be handled.
type arrivals struct {
	bridge   chan Incoming // bridge/info and bridge/status
	commands chan Incoming // everything else; they wait here until it is known whose topics these are
}

// dial makes a connection, and waits while messages of another appliance may arrive. With an error
// after it has connected it returns the link too.
func (c *Connection) dial(ctx context.Context, s Session, more ...string) (Link, arrivals, error) {
	in := arrivals{make(chan Incoming, mostArrived), make(chan Incoming, mostArrived)}
	info, status := c.topics.Bridge("info"), c.topics.Bridge("status")
	s.Receive = func(m Incoming) bool {
		to := in.commands
		if m.Topic == info || m.Topic == status {
			to = in.bridge
		}
		select {
		case to <- m:
			return true
		default: // nobody sends so many on purpose
			return false
		}
	}
	l, err := c.Dial(ctx, s)
	if err != nil {
		return nil, in, err
	}
	if err := l.Subscribe(0, append(more, info, status)...); err != nil {
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

// onBridgeMessage handles a message on bridge/info or bridge/status, and reports whether there may be
// a conflict with another appliance or program.
func (c *Connection) onBridgeMessage(m Incoming) bool {
	m.Ack()
	if m.Topic == c.topics.Bridge("info") {
		return c.rivals.onInfo(m.Payload)
	}
	return c.rivals.onStatus(string(m.Payload))
}

// serve publishes the outbox until the connection or ctx ends.
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

// forward passes on what arrives, and returns why the connection is to end.
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
			case <-ctx.Done(): // the broker still has it
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

// resolveConflict returns an error if another appliance has the older right to the topics. A later
// one is logged, and what it or another program has overwritten is published again.
func (c *Connection) resolveConflict() error {
	older, other := c.rivals.conflict()
	switch {
	case older:
		c.keepOff = true
		return c.rivals.err(c.topics.Base)
	case other != "":
		c.log.Warn("another appliance publishes under this MQTT base topic; give it another mqtt.base_topic", "base_topic", c.topics.Base,
			"appliance", other)
	}
	c.Out.Republish(c.topics.Bridge("info"), c.topics.Bridge("status"))
	return nil
}

// Probe returns an error if the broker cannot be reached, or if another appliance publishes under the
// base topic. It publishes nothing. It is for a check while no connection of this appliance runs.
func (c *Connection) Probe(ctx context.Context) error {
	if c.embedded != nil {
		l, err := c.embedded.listenTCP()
		if err != nil {
			return err
		}
		return l.Close()
	}
	// The appliance's own client id would end its connection.
	l, _, err := c.dial(ctx, Session{Suffix: "-look", Clean: true})
	if l != nil {
		defer l.Close()
	}
	if err == nil && c.rivals.online() {
		err = c.rivals.err(c.topics.Base)
	}
	return err
}
