// Package homeassistant mirrors robots as devices of Home Assistant over MQTT: it announces robots by MQTT
// discovery, publishes their actions and perceptions, and carries out commands. It does the same for agents, which are
// sessions without a robot, such as a coding agent, and for the appliance itself, which is called the bridge. Robots that
// the owner has not adopted are called strangers; the mirror publishes only their number and their arrival. The package
// can also run an embedded broker. A slow or absent broker never delays a robot.
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

// Mirror publishes the appliance's robots and agents on MQTT and carries out commands.
type Mirror struct {
	o          Options
	connection *connection.Connection
	lanes      lanes
}

// New checks the options and returns a mirror, which does nothing until Run is called. The error names the
// setting to correct. A mirror that is used only for Probe needs no options except connection.Options.
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

// Run mirrors until ctx ends, and then publishes that the bridge is offline if the broker can be reached. It
// returns nil once all its goroutines have ended.
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

// Probe checks the connection as connection.Connection.Probe does. It returns nil if mqtt.broker is "none". Probe
// publishes nothing, and must not be used while Run is running.
func (m *Mirror) Probe(ctx context.Context) error {
	if m.o.Broker == "none" {
		return nil
	}
	return m.connection.Probe(ctx)
}

// Publish queues a message that is not retained, on behalf of the owner. It returns an error while the
// broker is disconnected, because the outbox would drop the message.
func (m *Mirror) Publish(_ context.Context, topic, payload string) error {
	if s := m.Status(); !s.Connected {
		return fmt.Errorf("publish on %s: %w", topic, cmp.Or(s.Cause, error(errors.New("the broker is away"))))
	}
	m.connection.Out.Add(connection.Message{Topic: topic, Payload: []byte(payload), QoS: 1})
	return nil
}

// Status returns the status of the connection to the broker.
func (m *Mirror) Status() connection.Status { return m.connection.Status() }

// Condition returns the mirror's entry in the health report: whether it is connected, and where.
func (m *Mirror) Condition() health.Part {
	s := m.Status()
	part := health.Part{Name: "mqtt", OK: s.Connected, Since: s.Since}
	note := fmt.Sprintf("publishes to the broker at %s", s.Broker)
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
	if s.EndCount > 0 {
		note = fmt.Sprintf("%s; the embedded broker has ended %d times since perch was started, last at %s: %v", note, s.EndCount,
			s.LastEnd.Format(time.DateTime), s.LastEndCause)
	}
	return part.Saying(note)
}

// Account returns the user and the password of the embedded broker.
func (m *Mirror) Account() (user, password string) { return m.o.User, m.o.Password }
