package homeassistant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Times of a connection.
const (
	firstRetry   = time.Second
	longestRetry = 30 * time.Second // a broker that is back is noticed within
	steadyAfter  = 30 * time.Second // a connection that held so long begins with the shortest wait again
	goodbyeIn    = 2 * time.Second
)

// Status is the condition of the connection to the broker.
type Status struct {
	Connected  bool      `json:"connected"`  // and publishing
	Connecting bool      `json:"connecting"` // the first try has yet to end
	Broker     string    `json:"broker"`     // without user and password
	Since      time.Time `json:"since"`      // when that began
	Cause      error     `json:"-"`          // of not being connected, in a sentence with its cure

	// Of the embedded broker, which is started again when it ends.

	Ends  int       `json:"ends,omitempty"` // how often it has in this run
	Ended time.Time `json:"ended,omitzero"` // when it did so last
	Why   error     `json:"-"`
}

// connection keeps the appliance connected: it dials, and dials again, looks
// whether another appliance uses the same topics, and has the outbox published to
// the broker.
type connection struct {
	dialer dialer
	names  names
	out    *outbox
	other  *otherAppliance
	log    *slog.Logger
	spread func(time.Duration) time.Duration // a random part of it

	arrived chan incoming // commands, requests and Home Assistant's birth

	mu      sync.Mutex
	status  Status
	holding bool       // we publish, so what becomes of a command can be published
	early   []incoming // what came before that
}

// mostArrived bounds what the broker sends before it is looked at.
const mostArrived = 256

func newConnection(d dialer, n names, out *outbox, started time.Time, broker string, log *slog.Logger) *connection {
	return &connection{
		dialer: d, names: n, out: out, log: log, arrived: make(chan incoming, mostArrived),
		other:  newOtherAppliance(n.Appliance, started),
		spread: func(d time.Duration) time.Duration { return rand.N(d) },
		status: Status{Connecting: true, Broker: broker, Since: time.Now(), Cause: errors.New("the broker has yet to be tried")},
	}
}

func (c *connection) state() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// become notes a change of condition, and logs it once.
func (c *connection) become(connected bool, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status.Connected == connected && textOf(c.status.Cause) == textOf(cause) {
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

// textOf is an error's text, which nil has none of.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// found notes which broker it is, where that was asked for.
func (c *connection) found(broker string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Broker = broker
}

// errOtherAppliance is wrapped where another appliance has the older right.
var errOtherAppliance = errors.New("another appliance uses this base topic")

// run keeps connected until ctx ends, and publishes "offline" then.
func (c *connection) run(ctx context.Context) {
	wait, watching := firstRetry, false
	for ctx.Err() == nil {
		began := time.Now()
		err := c.once(ctx, watching)
		if ctx.Err() != nil {
			break
		}
		rival := errors.Is(err, errOtherAppliance)
		if rival != watching { // on with the same broker, without or with a will
			watching, wait = rival, firstRetry
			if rival {
				c.become(false, c.other.cause(c.names.Base))
			}
			continue
		}
		if err != nil {
			c.become(false, err)
		}
		if time.Since(began) > steadyAfter {
			wait = firstRetry
		}
		select {
		case <-time.After(wait/2 + c.spread(wait/2)):
		case <-ctx.Done():
		}
		wait = min(2*wait, longestRetry)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = Status{Broker: c.status.Broker, Since: time.Now(), Cause: errors.New("the appliance is stopping")}
}

// offlineWord is the last message of the bridge, sent itself or as its will.
func (c *connection) offlineWord() message {
	return message{topic: c.names.bridgeTopic("status"), payload: []byte("offline"), retained: true, qos: 1}
}

// once holds one connection until it ends. One that only watches publishes
// nothing, not even a will: it returns nil when there is no appliance left to keep
// off from, and wraps errOtherAppliance while there is.
func (c *connection) once(ctx context.Context, watching bool) error {
	c.other.forget()
	defer c.setHolding(false)
	s := session{clean: watching, take: c.take} // while it keeps off, the broker keeps nothing for it
	if !watching {
		s.will = new(c.offlineWord())
	}
	l, err := c.dialer.dial(ctx, s)
	if err != nil {
		return keepOff(err, watching)
	}
	if err = l.subscribe(0, c.names.bridgeTopic("info"), c.names.bridgeTopic("status"), c.names.birth()); err == nil {
		err = c.look(ctx, l, watching)
	}
	if err == nil && !watching {
		err = l.subscribe(1, c.names.commands()...)
	}
	if err != nil || watching {
		l.close()
		if err != nil && !errors.Is(err, errOtherAppliance) && ctx.Err() == nil {
			err = l.explain(err)
		}
		return keepOff(err, watching)
	}
	return c.hold(ctx, l)
}

// keepOff goes on watching where the broker is away.
func keepOff(err error, watching bool) error {
	if err != nil && watching && !errors.Is(err, errOtherAppliance) {
		return fmt.Errorf("%w: %w", errOtherAppliance, err)
	}
	return err
}

// look returns nil once there is no other appliance. Where there is one, it
// returns errOtherAppliance, but one that watches waits for its end.
func (c *connection) look(ctx context.Context, l link, watching bool) error {
	for {
		err := quiet(ctx, l)
		switch {
		case err != nil:
			return err
		case c.other.gone(time.Now()):
			return nil
		case !watching:
			return errOtherAppliance
		}
	}
}

// alone looks once, and returns an error where another appliance publishes.
func (c *connection) alone(ctx context.Context, l link) error {
	if err := quiet(ctx, l); err != nil {
		return err
	}
	if c.other.there() {
		return c.other.cause(c.names.Base)
	}
	return nil
}

// quiet waits while another appliance's messages may come.
func quiet(ctx context.Context, l link) error {
	select {
	case <-time.After(lookFor):
		return nil
	case err := <-l.lost():
		return lostError(err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func lostError(err error) error {
	return fmt.Errorf("the connection to the broker was lost: %w", err)
}

// hold publishes until the connection ends, or ctx does.
func (c *connection) hold(ctx context.Context, l link) error {
	c.become(true, nil)
	if dropped := c.out.connected(); dropped > 0 {
		c.log.Info("messages were dropped while the MQTT broker was away", "dropped", dropped)
	}
	if !c.setHolding(true) {
		l.close() // the broker has them still
		return errors.New("more commands waited than can be taken at once; the others are next")
	}
	k := newPublisher(c.out, l, c.offlineWord())
	go k.run()
	err := c.watch(ctx, k, l)
	k.cut()
	l.close()
	c.out.disconnected(k.wait())
	return err
}

// watch returns why the connection is to end.
func (c *connection) watch(ctx context.Context, k *publisher, l link) error {
	for {
		select {
		case <-k.done:
			if k.err != nil {
				return l.explain(k.err)
			}
			return nil
		case err := <-l.lost():
			return l.explain(lostError(err))
		case <-c.other.news:
			if err := c.contest(); err != nil {
				return err
			}
		case <-ctx.Done():
			k.leave()
			timer := time.NewTimer(goodbyeIn)
			defer timer.Stop()
			select {
			case <-k.done:
			case <-l.lost():
			case <-timer.C:
			}
			return ctx.Err()
		}
	}
}

// contest deals with another appliance that has come, and with a word of the
// bridge's status that is not ours.
func (c *connection) contest() error {
	older, other := c.other.contest()
	switch {
	case older:
		return errOtherAppliance
	case other != "":
		c.log.Warn("another appliance has come under this MQTT base topic; give it another mqtt.base_topic", "base_topic", c.names.Base, "appliance",
			other)
	}
	c.out.republish(c.names.bridgeTopic("info"), c.names.bridgeTopic("status"))
	return nil
}

// take sorts what arrives. It is called by the one that reads the connection,
// and never waits.
func (c *connection) take(m incoming) bool {
	switch m.topic {
	case c.names.bridgeTopic("info"):
		c.other.info(m.payload)
		m.kept()
	case c.names.bridgeTopic("status"):
		c.other.status(string(m.payload))
		m.kept()
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.holding {
			if len(c.early) >= mostArrived {
				return false
			}
			c.early = append(c.early, m)
			return true
		}
		return c.pass(m)
	}
	return true
}

// pass hands a message to the hub, if there is room for it.
func (c *connection) pass(m incoming) bool {
	select {
	case c.arrived <- m:
		return true
	default: // more than anybody means to send; those that are looked at are logged
		return false
	}
}

// setHolding begins to hand on what arrives, what came early first, or ends it. It
// returns false where there is no room for all of that.
func (c *connection) setHolding(holding bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	early := c.early
	c.holding, c.early = holding, nil
	if !holding {
		return true
	}
	for _, m := range early {
		if !c.pass(m) {
			return false
		}
	}
	return true
}
