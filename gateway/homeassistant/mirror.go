// Package homeassistant makes robots devices of Home Assistant over MQTT: it announces them by
// discovery, publishes what they do and sense, and carries out commands. It runs the embedded broker
// too. A slow or absent broker never delays a robot.
package homeassistant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"perch/gateway/broker"
	"perch/gateway/homeassistant/connection"
	"perch/health"
)

// Mirror is the appliance's robots and agents on MQTT.
type Mirror struct {
	o          Options
	connection *connection.Connection
	lanes      lanes
}

// New checks the options and returns a mirror that has yet to be run. The error names the setting to
// correct. For Probe alone, connection.Options are enough.
func New(o Options) (*Mirror, error) {
	if o.Serve == nil {
		o.Serve = broker.Process(o.Base, connection.ClientID(o.ID), o.Log)
	}
	c, err := connection.New(o.Options)
	if err != nil {
		return nil, fmt.Errorf("MQTT cannot be set up: %w", err)
	}
	return &Mirror{o: o, connection: c, lanes: lanes{calls: make(chan func(), 64)}}, nil
}

// Run mirrors until ctx ends. It returns nil when everything has ended; the bridge is then offline
// on every broker that could still be reached.
func (m *Mirror) Run(ctx context.Context) error {
	if m.o.Broker == "none" {
		<-ctx.Done()
		return nil
	}
	var connected sync.WaitGroup
	defer connected.Wait()
	connected.Go(func() { m.connection.Run(ctx) })
	newHub(&m.o, m.connection, &m.lanes).run(ctx, &m.lanes)
	m.lanes.Wait()
	return nil
}

// Probe returns an error if the broker cannot be reached, or if another appliance publishes under the
// base topic. It publishes nothing. It is for a check while no mirror runs.
func (m *Mirror) Probe(ctx context.Context) error {
	if m.o.Broker == "none" {
		return nil
	}
	return m.connection.Probe(ctx)
}

// Publish publishes a message for the owner, once and not retained. It returns an error while the
// broker is away: the message does not wait.
func (m *Mirror) Publish(_ context.Context, topic, payload string) error {
	if s := m.Status(); !s.Connected {
		return fmt.Errorf("publish on %s: %w", topic, cmp.Or(s.Cause, error(errors.New("the broker is away"))))
	}
	m.connection.Out.Add(connection.Message{Topic: topic, Payload: []byte(payload), QoS: 1})
	return nil
}

// Status returns the condition of the connection to the broker.
func (m *Mirror) Status() connection.Status { return m.connection.Status() }

// Condition returns whether the mirror is connected, and names the broker.
func (m *Mirror) Condition() health.Part {
	s := m.Status()
	part := health.Part{Name: "mqtt", OK: s.Connected, Since: s.Since}
	note := fmt.Sprintf("tells the broker at %s", s.Broker)
	switch {
	case s.Broker == "none":
		part.OK, note = true, "turned off by mqtt.broker"
	case s.Connecting:
		part.OK, note = true, fmt.Sprintf("is connecting to the broker at %s", s.Broker)
	case !s.Connected:
		note = s.Cause.Error()
	case s.Broker == "embedded":
		note = fmt.Sprintf("is the broker itself, on %s", m.o.Listen)
	}
	if s.Ends > 0 {
		note = fmt.Sprintf("%s; the embedded broker has ended %d times since perch was started, last at %s: %v", note, s.Ends,
			s.Ended.Format(time.DateTime), s.Why)
	}
	return part.Saying(note)
}

// Account returns the embedded broker's user and password.
func (m *Mirror) Account() (user, password string) { return m.o.User, m.o.Password }
