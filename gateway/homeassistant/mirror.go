// Package homeassistant makes the robots devices of Home Assistant: it mirrors
// over MQTT what they do, sense and recognize, takes commands, and
// announces them by discovery. It can bring the broker too. Nothing here ever
// delays a robot: a broker that is away, slow or unwilling is this package's
// own trouble.
package homeassistant

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/topic"
	"perch/perception"
)

// registry knows the robots.
type registry interface {
	List() []device.Robot
	Get(id device.ID) (device.Robot, error)
	// Find is the robot that is meant by a MAC address or a name.
	Find(robot string) (device.ID, error)
	Configure(id device.ID, c device.Change) (device.Robot, error)
	// Trusts is true for a robot that its owner has adopted by name. Any other
	// is a stranger: a number here, not a device.
	Trusts(id device.ID) bool
	Adopt(idOrCode string, now time.Time) (device.Robot, error)
	// AdoptClient adopts one of several clients that claim a robot, by its Client-Id or address.
	AdoptClient(id device.ID, client string) (device.Robot, error)
	Forget(id device.ID) error
}

// talk acts on robots. What is to be said or shown while a robot is offline it
// keeps for the next hello, and queued is true; its other acts fail there with
// an error whose Code is "robot_offline".
type talk interface {
	// SayKept has a robot speak, and keeps the sentence until it was spoken: it
	// returns once that is certain.
	SayKept(ctx context.Context, id device.ID, text string) (queued bool, err error)
	Alert(ctx context.Context, id device.ID, status, message, emotion string) (queued bool, err error)
	Feel(ctx context.Context, id device.ID, e agent.Emotion) error
	Mute(id device.ID, on bool)
	Abort(ctx context.Context, id device.ID) error
	Hangup(ctx context.Context, id device.ID, why string) error
	Reboot(ctx context.Context, id device.ID) error
	// Tools are those of an open channel, else those last known.
	Tools(id device.ID) []device.Tool
	Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error)
}

// characters are the appliance's, and which robot has which.
type characters interface {
	// Names are the ids of all but the household's.
	Names() []string
	// Who is the id of a robot's. It does not block.
	Who(robot device.ID, session string) string
}

// notifier accepts notifications, and has them shown and spoken.
type notifier interface {
	Notify(n notice.Notification) (notice.Notification, error)
}

// intake takes what other programs report that a robot has sensed.
type intake interface {
	FromBroker(id device.ID, name string, data json.RawMessage) error
}

// table is where something is kept by a key; what is put soon may be lost in a
// power cut.
type table[T any] interface {
	Get(key string) (T, bool, error)
	Put(key string, v T) error // durable when it returns
	PutSoon(key string, v T)
	DeleteSoon(key string)
	All() iter.Seq2[string, T]
}

// Options are what a mirror needs. Only fields with a note may be
// empty.
type Options struct {
	connection.Options
	Version string
	URL     func() string // where a person finds the appliance; empty is nowhere
	// Host is the name the appliance goes by on the network, and the one it was
	// to have where another machine has that, each empty where there is none.
	Host func() (host, taken string)
	// Transport is that of robots without their own.
	Transport device.Transport
	Away      time.Duration // a robot not seen for so long is offline; 0 is never
	// ShareTranscripts publishes what was recognized and spoken. Home Assistant keeps
	// that in its database.
	ShareTranscripts bool

	Robots     registry
	Talk       talk
	Notifier   notifier
	Characters characters
	// Notices are the notifications that are kept, for what becomes of one from
	// before this run.
	Notices notices
	Senses  intake
	// Questions are those of agents without a robot, among others.
	Questions questions
	Firmware  catalogue
	Gestures  perception.Gestures // that robots can be asked for; none is no entity for them
	Board     *agent.Board
	Bus       *event.Bus
	// Phrase is one of the appliance's own sentences in a robot's language, by its name.
	Phrase  func(id device.ID, name string) string
	Restart func() // begins a restart of the appliance, and returns at once
	// Announced are the ids of all components ever announced to Home Assistant,
	// by robot or "bridge".
	Announced table[[]string]
	Kept      table[[]Waiting] // commands that wait for a robot's next hello, by robot
}

// Mirror is the appliance's robots and agents on MQTT.
type Mirror struct {
	o       Options
	names   topic.Names
	out     *connection.Outbox
	connect *connection.Connection
	lanes   device.Lanes
	calls   chan func() // from the lanes to the hub
}

// ClientID returns the beginning of the client ids of an appliance's connections to its broker.
func ClientID(appliance string) string { return connection.ClientID(appliance) }

// New checks the options and returns a mirror that has yet to be run. The error names the setting to
// correct. For Try alone, connection.Options are enough.
func New(o Options) (*Mirror, error) {
	c, err := connection.New(o.Options)
	if err != nil {
		return nil, fmt.Errorf("MQTT cannot be set up: %w", err)
	}
	return &Mirror{o: o, names: o.Topics(), out: c.Out, connect: c, calls: make(chan func(), 64)}, nil
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
	connected.Go(func() { m.connect.Run(ctx) })
	newHub(m).run(ctx)
	m.lanes.Wait()
	return nil
}

// Try returns an error if the broker cannot be reached, or if another appliance publishes under the
// base topic. It publishes nothing. It is for a check while no mirror runs.
func (m *Mirror) Try(ctx context.Context) error {
	if m.o.Broker == "none" {
		return nil
	}
	return m.connect.Try(ctx)
}

// Publish publishes a message of the owner's, once and not retained. It returns an
// error while the broker is away: the message is not kept for later.
func (m *Mirror) Publish(_ context.Context, topic, payload string) error {
	if s := m.Status(); !s.Connected {
		return fmt.Errorf("publish on %s: %w", topic, cmp.Or(s.Cause, error(errors.New("the broker is away"))))
	}
	m.out.Put(connection.Message{Topic: topic, Payload: []byte(payload), QoS: 1})
	return nil
}

// Status returns the condition of the connection to the broker.
func (m *Mirror) Status() connection.Status { return m.connect.Status() }

// Account is the embedded broker's user and password.
func (m *Mirror) Account() (user, password string) { return m.o.User, m.o.Password }
