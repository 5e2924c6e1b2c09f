// Package homeassistant makes the robots devices of Home Assistant: it mirrors
// over MQTT what they do, sense and recognize, takes commands, and
// announces them by discovery. It can bring the broker too. Nothing here ever
// delays a robot: a broker that is away, slow or unwilling is this package's
// own trouble.
package homeassistant

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/language"
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
	// Broker is "embedded", "none", "supervisor", or the address of one:
	// mqtt://host:1883, mqtts://host:8883, ws://host:9001/mqtt.
	Broker string
	// Ask returns the broker with "supervisor", before each connection. An empty
	// address is that there is none: then the embedded one is begun, and kept.
	Ask            func(context.Context) (address, user, password string, err error)
	Listen         string // of the embedded broker; empty is ":1883"
	User, Password string // of the broker; empty is none, which the embedded one refuses
	CA             []byte // PEM, of a broker's own authority; nil is the machine's
	// Serve runs the embedded broker on a listener until ctx ends, which is nil,
	// or the broker does. It leaves the listener open.
	Serve   func(ctx context.Context, l *net.TCPListener, user, password string) error
	Base    string // "perch"
	Prefix  string // Home Assistant's, "homeassistant"
	ID      string // the appliance's, 8 hex digits
	Version string
	URL     func() string // where a person finds the appliance; empty is nowhere
	// Host is the name the appliance goes by on the network, and the one it was
	// to have where another machine has that, each empty where there is none.
	Host    func() (host, taken string)
	Started time.Time
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
	Log       *slog.Logger
}

// Mirror is the appliance's robots and agents on MQTT.
type Mirror struct {
	o       Options
	names   names
	out     *outbox
	connect *connection
	broker  *brokerSupervisor // nil where the broker is another program's
	wanted  <-chan struct{}   // is closed once that is to run; nil is from the beginning
	lanes   device.Lanes
	calls   chan func() // from the lanes to the hub
}

// ErrOptions is wrapped by New for what it cannot work with.
var ErrOptions = errors.New("MQTT cannot be set up")

// ClientID is how the ids of an appliance's connections to its broker begin.
func ClientID(appliance string) string { return "perch-" + appliance }

// New checks the options and returns a mirror that has yet to be run. It wraps
// ErrOptions with a sentence that names the key to correct. For Try alone, the
// options up to Prefix, and ID and Log, are enough.
func New(o Options) (*Mirror, error) {
	o.Listen = cmp.Or(o.Listen, ":1883")
	m := &Mirror{o: o, names: names{o.Base, o.Prefix, o.ID}, out: newOutbox(), calls: make(chan func(), 64)}
	client, shown, err := o.dialer()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	d := dialer(client)
	if o.Broker == "embedded" || o.Broker == "supervisor" {
		m.broker = newBrokerSupervisor(o)
		d = embeddedDialer{m.broker, client}
	}
	asked := &askingDialer{options: o, embedded: d, begin: make(chan struct{})}
	if o.Broker == "supervisor" {
		d, m.wanted = asked, asked.begin
	}
	m.connect = newConnection(d, m.names, m.out, o.Started, shown, o.Log)
	asked.found = m.connect.found
	return m, nil
}

// Check reports what New refuses, a line for each fault.
func (o Options) Check() error {
	_, _, err := o.dialer()
	return err
}

// dialer is how the broker is reached, and its address as it may be shown.
func (o Options) dialer() (client *pahoDialer, shown string, err error) {
	err = errors.Join(checkTopic("mqtt.base_topic", o.Base), checkTopic("mqtt.discovery_prefix", o.Prefix), checkTopic("mqtt", o.ID))
	if err == nil && o.Base == o.Prefix {
		err = language.OfKey("mqtt.base_topic", fmt.Errorf("it and mqtt.discovery_prefix are both %q; they must differ", o.Base))
	}
	if err != nil {
		return nil, "", err
	}
	client = &pahoDialer{user: o.User, password: o.Password, id: ClientID(o.ID)}
	switch o.Broker {
	case "none":
		return client, o.Broker, nil
	case "embedded", "supervisor":
		if o.User == "" || o.Password == "" {
			err = language.OfKey("mqtt", errors.New("the embedded broker needs a user and a password"))
		}
		return client, o.Broker, err
	}
	u, err := url.Parse(o.Broker)
	if err != nil || u.Hostname() == "" {
		// The address is not shown: a wrong one may hold a password.
		return nil, "", language.OfKey("mqtt.broker", errors.New("it is embedded, none or an address such as mqtt://192.168.1.9:1883"))
	}
	if u.User != nil {
		return nil, "", language.OfKey("mqtt.broker",
			errors.New("it holds a user or a password; give them as mqtt.user and mqtt.password, which are never shown"))
	}
	ports := map[string]string{"mqtt": "1883", "mqtts": "8883", "ws": "80", "wss": "443"}
	port, known := ports[u.Scheme]
	if !known {
		return nil, "", language.OfKey("mqtt.broker",
			fmt.Errorf("it begins with %.20q; it must be mqtt://, mqtts://, ws:// or wss://", u.Scheme+"://"))
	}
	if u.Port() == "" {
		u.Host += ":" + port
	}
	client.url = u
	if u.Scheme == "mqtts" || u.Scheme == "wss" {
		if client.tls, err = tlsFor(u.Hostname(), o.CA); err != nil {
			return nil, "", err
		}
	}
	return client, u.Scheme + "://" + u.Host, nil
}

func tlsFor(host string, authority []byte) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if authority != nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(authority) {
			return nil, language.OfKey("mqtt.ca", errors.New("it holds no certificate in PEM"))
		}
	}
	return c, nil
}

// Run mirrors until ctx ends. It returns nil when all has ended; the bridge is
// then offline on every broker that could still be reached.
func (m *Mirror) Run(ctx context.Context) error {
	if m.o.Broker == "none" {
		<-ctx.Done()
		return nil
	}
	var broker, client sync.WaitGroup
	brokerCtx, stopBroker := context.WithCancel(context.WithoutCancel(ctx))
	defer broker.Wait()
	defer stopBroker()
	if m.broker != nil {
		broker.Go(func() { m.runBroker(brokerCtx) })
	}
	defer client.Wait()
	client.Go(func() { m.connect.run(ctx) })
	newHub(m).run(ctx)
	m.lanes.Wait()
	return nil
}

// runBroker runs the embedded broker, once it is wanted, until ctx ends.
func (m *Mirror) runBroker(ctx context.Context) {
	if m.wanted != nil {
		select {
		case <-m.wanted:
		case <-ctx.Done():
			return
		}
	}
	m.broker.run(ctx)
}

// Try finds out whether the broker can be had, and whether another appliance
// publishes under the base topic; it publishes nothing. It is for a look
// while no mirror runs.
func (m *Mirror) Try(ctx context.Context) error {
	if m.broker != nil {
		l, err := listenMQTT(m.broker.listen)
		if err != nil {
			return err
		}
		return l.Close()
	}
	if m.o.Broker == "none" {
		return nil
	}
	// Not under the appliance's own name, which would end its connection.
	l, err := m.connect.dialer.dial(ctx, session{as: "-look", clean: true, take: func(in incoming) bool { return m.connect.take(in, nil) }})
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.subscribe(0, m.names.bridgeTopic("info"), m.names.bridgeTopic("status")); err != nil {
		return err
	}
	err = quiet(ctx, l)
	if err == nil && m.connect.other.there() {
		err = m.connect.other.cause(m.names.Base)
	}
	return err
}

// Publish publishes a message of the owner's, once and not retained. It returns an
// error while the broker is away: the message is not kept for later.
func (m *Mirror) Publish(_ context.Context, topic, payload string) error {
	if s := m.Status(); !s.Connected {
		return fmt.Errorf("publish on %s: %w", topic, cmp.Or(s.Cause, error(errors.New("the broker is away"))))
	}
	m.out.put(message{topic: topic, payload: []byte(payload), qos: 1})
	return nil
}

// Status is the condition of the connection to the broker.
func (m *Mirror) Status() Status {
	s := m.connect.state()
	if m.o.Broker == "none" {
		s.Connecting, s.Cause = false, errors.New("mqtt.broker is none")
	}
	if m.broker != nil {
		s.Ends, s.Ended, s.Why = m.broker.ended()
	}
	return s
}

// Account is the embedded broker's user and password.
func (m *Mirror) Account() (user, password string) { return m.o.User, m.o.Password }
