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
	keepOff bool          // from another appliance, with neither a will nor a session that the broker keeps

	mu     sync.Mutex
	status Status
}

// mostArrived bounds what the broker sends before it is looked at.
const mostArrived = 256

func newConnection(d dialer, n names, out *outbox, started time.Time, broker string, log *slog.Logger) *connection {
	return &connection{
		dialer: d, names: n, out: out, log: log, arrived: make(chan incoming),
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

// run keeps connected until ctx ends, and publishes "offline" then.
func (c *connection) run(ctx context.Context) {
	for wait := firstRetry; ctx.Err() == nil; wait = min(2*wait, longestRetry) {
		began, keptOff := time.Now(), c.keepOff
		err := c.once(ctx)
		if ctx.Err() != nil {
			break
		}
		if keptOff && !c.keepOff && err == nil {
			wait = firstRetry / 2
			continue // the topics are free: with a will now
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
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = Status{Broker: c.status.Broker, Since: time.Now(), Cause: errors.New("the appliance is stopping")}
}

// offlineWord is the last message of the bridge, sent itself or as its will.
func (c *connection) offlineWord() message {
	return message{topic: c.names.bridgeTopic("status"), payload: []byte("offline"), retained: true, qos: 1}
}

// once holds one connection until it ends. While another appliance has the topics it
// publishes nothing, not even a will; it returns nil once they are free.
func (c *connection) once(ctx context.Context) error {
	c.other.forget()
	in := make(chan incoming, mostArrived) // commands, which wait there until it is known whose they are
	s := session{clean: c.keepOff, take: func(m incoming) bool { return c.take(m, in) }}
	if !c.keepOff {
		s.will = new(c.offlineWord())
	}
	l, err := c.dialer.dial(ctx, s)
	if err != nil {
		return err
	}
	if err = l.subscribe(0, c.names.bridgeTopic("info"), c.names.bridgeTopic("status"), c.names.birth()); err == nil {
		err = quiet(ctx, l)
	}
	switch {
	case err != nil:
	case !c.other.gone(time.Now()):
		c.keepOff, err = true, c.other.cause(c.names.Base)
	case c.keepOff:
		c.keepOff = false
	default:
		if err = l.subscribe(1, c.names.commands()...); err == nil {
			return c.hold(ctx, l, in)
		}
	}
	l.close()
	return err
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
func (c *connection) hold(ctx context.Context, l link, in <-chan incoming) error {
	c.become(true, nil)
	if dropped := c.out.connected(); dropped > 0 {
		c.log.Info("messages were dropped while the MQTT broker was away", "dropped", dropped)
	}
	k := newPublisher(c.out, l, c.offlineWord())
	go k.run()
	err := c.watch(ctx, k, l, in)
	k.cut()
	l.close()
	c.out.disconnected(k.wait())
	return err
}

// watch hands on what arrives, and returns why the connection is to end.
func (c *connection) watch(ctx context.Context, k *publisher, l link, in <-chan incoming) error {
	for {
		select {
		case <-k.done:
			return k.err
		case err := <-l.lost():
			return lostError(err)
		case m := <-in:
			select {
			case c.arrived <- m:
			case <-ctx.Done(): // the broker has it still
			}
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
		c.keepOff = true
		return c.other.cause(c.names.Base)
	case other != "":
		c.log.Warn("another appliance has come under this MQTT base topic; give it another mqtt.base_topic", "base_topic", c.names.Base, "appliance",
			other)
	}
	c.out.republish(c.names.bridgeTopic("info"), c.names.bridgeTopic("status"))
	return nil
}

// take sorts what arrives, with commands into in, and returns false for one that there is no
// room for. It is called by the one that reads the connection, and never waits.
func (c *connection) take(m incoming, in chan<- incoming) bool {
	switch m.topic {
	case c.names.bridgeTopic("info"):
		c.other.info(m.payload)
		m.kept()
	case c.names.bridgeTopic("status"):
		c.other.status(string(m.payload))
		m.kept()
	default:
		select {
		case in <- m:
		default: // more than anybody means to send; those that are looked at are logged
			return false
		}
	}
	return true
}
