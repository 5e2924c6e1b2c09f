package homeassistant

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

// Deadlines of a connection to a broker.
const (
	connectWithin = 10 * time.Second
	writeWithin   = 10 * time.Second
	aliveEvery    = 15 * time.Second
	pongWithin    = 10 * time.Second
)

// link is one connection to a broker. It is used once.
type link interface {
	// publish hands a message over, in order. It waits no longer than a write
	// may take.
	publish(m message) receipt
	// subscribe returns once the broker has agreed. With QoS 1 the broker keeps
	// what comes while it is disconnected.
	subscribe(qos byte, filters ...string) error
	// lost returns why the connection ended.
	lost() <-chan error
	// close ends it within a moment; the will is not published.
	close()
}

// receipt is the fate of a message.
type receipt interface {
	Done() <-chan struct{}
	Error() error
}

// dialer connects to a broker.
type dialer interface {
	// dial returns an error of one sentence that names cause and cure, and no
	// password.
	dial(ctx context.Context, s session) (link, error)
}

// session is how a connection is to be.
type session struct {
	as   string   // is added to the client's id
	will *message // published where the connection is lost; nil is none
	// clean has the broker forget what it has kept for us, and keep nothing.
	clean bool
	// take is given what arrives. It does not wait, and returns false for what
	// it has no room for.
	take func(incoming) bool
}

// incoming is a message from the broker.
type incoming struct {
	topic    string
	payload  []byte
	retained bool
	// confirm confirms to the broker that the message need not be kept any more; it
	// does not wait. Nil needs no confirmation.
	confirm func()
}

// kept confirms a message that is not needed any more.
func (m incoming) kept() {
	if m.confirm != nil {
		m.confirm()
	}
}

// pahoDialer makes a client for each connection. paho can connect anew by
// itself, but then it publishes first what it has kept from before, which may
// no longer be true; and it does not return why it cannot.
type pahoDialer struct {
	url            *url.URL
	user, password string
	tls            *tls.Config
	id             string
}

func (d *pahoDialer) dial(ctx context.Context, s session) (link, error) {
	l := &pahoLink{ended: make(chan error, 1), confirms: make(chan mqtt.Message, mostArrived), closed: make(chan struct{})}
	o := mqtt.NewClientOptions().AddBroker(d.url.String()).SetClientID(d.id + s.as).SetUsername(d.user).SetPassword(d.password).
		SetProtocolVersion(4).SetCleanSession(s.clean).SetAutoReconnect(false).SetConnectRetry(false).
		SetConnectTimeout(connectWithin).SetWriteTimeout(writeWithin).SetKeepAlive(aliveEvery).SetPingTimeout(pongWithin).
		// Handlers never wait, so messages can be taken in their order. What is
		// to be kept is confirmed once it is.
		SetOrderMatters(true).SetAutoAckDisabled(true).
		SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) { l.arrived(m, s.take) }).
		SetConnectionLostHandler(func(_ mqtt.Client, err error) { l.ended <- err }).
		SetCustomOpenConnectionFn(func(*url.URL, mqtt.ClientOptions) (net.Conn, error) { return l.open(ctx, d) })
	if s.will != nil {
		o.SetBinaryWill(s.will.topic, s.will.payload, s.will.qos, s.will.retained)
	}
	l.client = mqtt.NewClient(o)
	l.confirming.Go(l.confirm)
	stop := context.AfterFunc(ctx, l.cut)
	defer stop()
	t := l.client.Connect()
	<-t.Done() // within the time to connect, or when ctx ends
	if err := t.Error(); err != nil {
		l.cut()
		l.hush()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, d.explain(err)
	}
	return l, nil
}

// pahoLink is a connection of paho's.
type pahoLink struct {
	client mqtt.Client
	ended  chan error

	confirms   chan mqtt.Message // that are kept now
	confirming sync.WaitGroup
	once       sync.Once
	closed     chan struct{}

	mu   sync.Mutex
	conn net.Conn
}

// arrived passes on a message. One with QoS 1 that there is no room for ends
// the connection: the broker has it still, and gives it again.
func (l *pahoLink) arrived(m mqtt.Message, take func(incoming) bool) {
	in := incoming{topic: m.Topic(), payload: m.Payload(), retained: m.Retained()}
	if m.Qos() > 0 {
		in.confirm = func() {
			select {
			case l.confirms <- m:
			case <-l.closed: // it comes again
			default:
				l.cut()
			}
		}
	}
	if !take(in) && m.Qos() > 0 {
		l.cut()
	}
}

// confirm confirms what is kept. It is a goroutine of its own, because paho
// waits for the broker to take a confirmation.
func (l *pahoLink) confirm() {
	for {
		select {
		case m := <-l.confirms:
			m.Ack()
		case <-l.closed:
			return
		}
	}
}

// hush confirms nothing any more.
func (l *pahoLink) hush() {
	l.once.Do(func() { close(l.closed) })
	l.confirming.Wait()
}

// open makes the connection that the client talks over.
func (l *pahoLink) open(ctx context.Context, d *pahoDialer) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	conn = newBounded(conn)
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	return conn, nil
}

func (d *pahoDialer) connect(ctx context.Context) (net.Conn, error) {
	switch d.url.Scheme {
	case "mqtts":
		return (&tls.Dialer{Config: d.tls}).DialContext(ctx, "tcp", d.url.Host)
	case "ws", "wss": // which cannot be stopped, so it has less time
		return mqtt.NewWebsocket(d.url.String(), d.tls, connectWithin/2, nil, nil)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", d.url.Host)
}

// cut ends the connection without a word.
func (l *pahoLink) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close() // its reader sees that
	}
}

func (l *pahoLink) publish(m message) receipt {
	return l.client.Publish(m.topic, m.qos, m.retained, m.payload)
}

func (l *pahoLink) subscribe(qos byte, filters ...string) error {
	wanted := map[string]byte{}
	for _, f := range filters {
		wanted[f] = qos
	}
	t := l.client.SubscribeMultiple(wanted, nil)
	if !t.WaitTimeout(connectWithin) {
		return errors.New("the broker does not answer a subscription; it may be overloaded")
	}
	err := t.Error()
	if err != nil && !l.client.IsConnectionOpen() {
		return lostError(err)
	}
	if err != nil {
		return fmt.Errorf("the broker does not let this user read %v; give mqtt.user the right to: %w", filters, err)
	}
	return nil
}

func (l *pahoLink) lost() <-chan error { return l.ended }

func (l *pahoLink) close() {
	l.client.Disconnect(500) // milliseconds, to say goodbye in
	l.cut()
	l.hush()
}
