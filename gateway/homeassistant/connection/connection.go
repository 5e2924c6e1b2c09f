package connection

import (
	"context"
	"errors"
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
	// Dialer connects to the broker. Tests may replace it before Run.
	Dialer Dialer

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
		Out: NewOutbox(), Arrived: make(chan Incoming), Dialer: client, topics: o.Topics(),
		rivals: newRivals(o.ID, o.Started), log: o.Log, start: make(chan struct{}),
		status: Status{Connecting: true, Broker: shown, Since: time.Now(), Cause: errors.New("the broker has yet to be tried")},
	}
	switch o.Broker {
	case "none":
		c.status.Connecting, c.status.Cause = false, errors.New("mqtt.broker is none")
	case "embedded":
		c.embedded = newSupervisor(o)
		c.Dialer = embeddedDialer{c.embedded, client}
		close(c.start)
	case "supervisor":
		c.embedded = newSupervisor(o)
		c.Dialer = &supervisorDialer{options: o, embedded: embeddedDialer{c.embedded, client}, start: c.start, resolved: c.setBroker}
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
	if c.status.Connected == connected && message(c.status.Cause) == message(cause) {
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

// message returns the text of an error that may be nil.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// setBroker records the address of the broker that the supervisor has named.
func (c *Connection) setBroker(broker string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Broker = broker
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
	in := make(chan Incoming, mostArrived) // commands wait here until it is known whose topics these are
	s := Session{Clean: c.keepOff, Receive: func(m Incoming) bool { return c.receive(m, in) }}
	if !c.keepOff {
		s.Will = new(c.offline())
	}
	l, err := c.Dialer.Dial(ctx, s)
	if err != nil {
		return err
	}
	if err = l.Subscribe(0, c.topics.Bridge("info"), c.topics.Bridge("status"), c.topics.Birth()); err == nil {
		err = waitForRivals(ctx, l)
	}
	switch {
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

// waitForRivals waits while messages of another appliance may arrive.
func waitForRivals(ctx context.Context, l Link) error {
	select {
	case <-time.After(rivalWait):
		return nil
	case err := <-l.Lost():
		return lostError(err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve publishes the outbox until the connection or ctx ends.
func (c *Connection) serve(ctx context.Context, l Link, in <-chan Incoming) error {
	c.setStatus(true, nil)
	if dropped := c.Out.Open(); dropped > 0 {
		c.log.Info("messages were dropped while the MQTT broker was away", "dropped", dropped)
	}
	p := newPublisher(c.Out, l, c.offline())
	go p.run()
	err := c.forward(ctx, p, l, in)
	p.cancel()
	l.Close()
	c.Out.Close(p.unconfirmed())
	return err
}

// forward passes on what arrives, and returns why the connection is to end.
func (c *Connection) forward(ctx context.Context, p *publisher, l Link, in <-chan Incoming) error {
	for {
		select {
		case <-p.done:
			return p.err
		case err := <-l.Lost():
			return lostError(err)
		case m := <-in:
			select {
			case c.Arrived <- m:
			case <-ctx.Done(): // the broker still has it
			}
		case <-c.rivals.news:
			if err := c.resolveConflict(); err != nil {
				return err
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

// receive sorts what arrives, commands into in, and returns false if there is no room for one. The
// goroutine that reads the connection calls it; it never waits.
func (c *Connection) receive(m Incoming, in chan<- Incoming) bool {
	switch m.Topic {
	case c.topics.Bridge("info"):
		c.rivals.onInfo(m.Payload)
		m.Ack()
	case c.topics.Bridge("status"):
		c.rivals.onStatus(string(m.Payload))
		m.Ack()
	default:
		select {
		case in <- m:
		default: // nobody sends so many on purpose
			return false
		}
	}
	return true
}

// Try returns an error if the broker cannot be reached, or if another appliance publishes under the
// base topic. It publishes nothing. It is for a check while no connection of this appliance runs.
func (c *Connection) Try(ctx context.Context) error {
	if c.embedded != nil {
		l, err := c.embedded.listenTCP()
		if err != nil {
			return err
		}
		return l.Close()
	}
	// The appliance's own client id would end its connection.
	l, err := c.Dialer.Dial(ctx, Session{Suffix: "-look", Clean: true, Receive: func(in Incoming) bool { return c.receive(in, nil) }})
	if err != nil {
		return err
	}
	defer l.Close()
	if err := l.Subscribe(0, c.topics.Bridge("info"), c.topics.Bridge("status")); err != nil {
		return err
	}
	err = waitForRivals(ctx, l)
	if err == nil && c.rivals.online() {
		err = c.rivals.err(c.topics.Base)
	}
	return err
}
