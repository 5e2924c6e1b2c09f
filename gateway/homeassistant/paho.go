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
	"github.com/eclipse/paho.mqtt.golang/packets"
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
	// subscribe returns once the broker has agreed.
	subscribe(filters ...string) error
	// lost tells why the connection ended.
	lost() <-chan error
	// close ends it within a moment; the will is not told.
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
	// password. What arrives is given to take, which does not wait.
	dial(ctx context.Context, will *message, take func(incoming)) (link, error)
}

// incoming is a message from the broker.
type incoming struct {
	topic    string
	payload  []byte
	retained bool
}

// pahoDialer makes a client for each connection. paho can connect anew by
// itself, but then it publishes first what it has kept from before, which may
// no longer be true; and it does not tell why it cannot.
type pahoDialer struct {
	url            *url.URL
	user, password string
	tls            *tls.Config
	id             string
}

func (d *pahoDialer) dial(ctx context.Context, will *message, take func(incoming)) (link, error) {
	l := &pahoLink{ended: make(chan error, 1)}
	o := mqtt.NewClientOptions().AddBroker(d.url.String()).SetClientID(d.id).SetUsername(d.user).SetPassword(d.password).
		SetProtocolVersion(4).SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false).
		SetConnectTimeout(connectWithin).SetWriteTimeout(writeWithin).SetKeepAlive(aliveEvery).SetPingTimeout(pongWithin).
		SetStore(noStore{}).
		// Handlers never wait, so messages can be taken in their order.
		SetOrderMatters(true).
		SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) {
			take(incoming{m.Topic(), m.Payload(), m.Retained()})
		}).
		SetConnectionLostHandler(func(_ mqtt.Client, err error) { l.ended <- err }).
		SetCustomOpenConnectionFn(func(*url.URL, mqtt.ClientOptions) (net.Conn, error) { return l.open(ctx, d) })
	if will != nil {
		o.SetBinaryWill(will.topic, will.payload, will.qos, will.retained)
	}
	l.client = mqtt.NewClient(o)
	stop := context.AfterFunc(ctx, l.cut)
	defer stop()
	t := l.client.Connect()
	<-t.Done() // within the time to connect, or when ctx ends
	if err := t.Error(); err != nil {
		l.cut()
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

	mu   sync.Mutex
	conn net.Conn
}

// open makes the connection that the client talks over.
func (l *pahoLink) open(ctx context.Context, d *pahoDialer) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
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
		_ = l.conn.Close() // whoever reads from it sees that
	}
}

func (l *pahoLink) publish(m message) receipt {
	return l.client.Publish(m.topic, m.qos, m.retained, m.payload)
}

func (l *pahoLink) subscribe(filters ...string) error {
	wanted := map[string]byte{}
	for _, f := range filters {
		wanted[f] = 1
	}
	t := l.client.SubscribeMultiple(wanted, nil)
	if !t.WaitTimeout(connectWithin) {
		return errors.New("the broker does not answer a subscription; it may be overloaded")
	}
	if err := t.Error(); err != nil {
		return fmt.Errorf("the broker does not let this user read %v; give mqtt.user the right to: %w", filters, err)
	}
	return nil
}

func (l *pahoLink) lost() <-chan error { return l.ended }

func (l *pahoLink) close() {
	l.client.Disconnect(500) // milliseconds, to say goodbye in
	l.cut()
}

// noStore keeps nothing: what a lost connection did not deliver is old by the
// time there is another one.
type noStore struct{}

func (noStore) Open()                             {}
func (noStore) Put(string, packets.ControlPacket) {}
func (noStore) Get(string) packets.ControlPacket  { return nil }
func (noStore) All() []string                     { return nil }
func (noStore) Del(string)                        {}
func (noStore) Close()                            {}
func (noStore) Reset()                            {}
