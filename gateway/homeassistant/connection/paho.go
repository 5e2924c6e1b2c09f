package connection

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

// pahoDialer creates a new client of the paho library for each connection. The library's own reconnection
// would first publish old messages, which may be out of date, and would not report why it cannot connect.
type pahoDialer struct {
	url            *url.URL
	user, password string
	tls            *tls.Config
	id             string // client ID without the suffix of a session
}

// dial connects to the broker. It returns ctx's error if ctx ends before that. Other errors are sentences of explain.
func (d *pahoDialer) dial(ctx context.Context, s Session) (Link, error) {
	l := &pahoLink{lost: make(chan error, 1), confirmations: make(chan mqtt.Message, maxArrived), closed: make(chan struct{})}
	o := mqtt.NewClientOptions().AddBroker(d.url.String()).SetClientID(d.id + s.Suffix).SetUsername(d.user).SetPassword(d.password).
		SetProtocolVersion(4).SetCleanSession(s.Clean).SetAutoReconnect(false).SetConnectRetry(false).
		SetConnectTimeout(connectTimeout).SetWriteTimeout(writeTimeout).SetKeepAlive(keepAlive).SetPingTimeout(pingTimeout).
		// The library can call the handlers in order, because they never block. A message is confirmed by
		// Incoming.Confirm, once its command has been executed or is on disk.
		SetOrderMatters(true).SetAutoAckDisabled(true).
		SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) { l.receive(m, s.Receive) }).
		SetConnectionLostHandler(func(_ mqtt.Client, err error) { l.lost <- err }).
		SetCustomOpenConnectionFn(func(*url.URL, mqtt.ClientOptions) (net.Conn, error) { return l.open(ctx, d) })
	if s.Will != nil {
		o.SetBinaryWill(s.Will.Topic, s.Will.Payload, s.Will.QoS, s.Will.Retained)
	}
	l.client = mqtt.NewClient(o)
	l.confirming.Go(l.confirm)
	stop := context.AfterFunc(ctx, l.disconnect)
	defer stop()
	t := l.client.Connect()
	<-t.Done() // within connectTimeout, or when ctx ends
	if err := t.Error(); err != nil {
		l.disconnect()
		l.stopConfirming()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, explain(err, d.url.Host, d.id)
	}
	return l, nil
}

// connect opens a network connection to the broker.
func (d *pahoDialer) connect(ctx context.Context) (net.Conn, error) {
	switch d.url.Scheme {
	case "mqtts":
		return (&tls.Dialer{Config: d.tls}).DialContext(ctx, "tcp", d.url.Host)
	case "ws", "wss": // has a shorter timeout, because ctx cannot cancel it
		return mqtt.NewWebsocket(d.url.String(), d.tls, connectTimeout/2, nil, nil)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", d.url.Host)
}

// pahoLink is a Link on a client of the paho library.
type pahoLink struct {
	client mqtt.Client
	lost   chan error // receives the reason why the connection was lost

	confirmations chan mqtt.Message // messages to confirm to the broker
	confirming    sync.WaitGroup    // counts the goroutine that runs confirm
	once          sync.Once         // makes only the first call of stopConfirming close the channel closed
	closed        chan struct{}     // closed when confirm has to end

	mu   sync.Mutex
	conn net.Conn // nil until the network connection is open
}

// receive passes a message to handle. If handle drops a message with QoS 1, receive closes the connection, and the
// broker delivers the message again on the next connection.
func (l *pahoLink) receive(m mqtt.Message, handle func(Incoming) bool) {
	in := Incoming{Topic: m.Topic(), Payload: m.Payload(), Retained: m.Retained()}
	if m.Qos() > 0 {
		in.Confirm = func() {
			select {
			case l.confirmations <- m:
			case <-l.closed: // the broker delivers the message again
			default:
				l.disconnect()
			}
		}
	}
	if !handle(in) && m.Qos() > 0 {
		l.disconnect()
	}
}

// confirm confirms messages to the broker until the link is closed. It runs in its own goroutine, because
// the library blocks until the confirmation has been written.
func (l *pahoLink) confirm() {
	for {
		select {
		case m := <-l.confirmations:
			m.Ack()
		case <-l.closed:
			return
		}
	}
}

// stopConfirming ends the goroutine that runs confirm, and waits for it.
func (l *pahoLink) stopConfirming() {
	l.once.Do(func() { close(l.closed) })
	l.confirming.Wait()
}

// open opens the network connection and remembers it for disconnect.
func (l *pahoLink) open(ctx context.Context, d *pahoDialer) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	conn = newBoundedConn(conn)
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	return conn, nil
}

// disconnect closes the network connection without MQTT's DISCONNECT.
func (l *pahoLink) disconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close() // the goroutine that reads gets the error
	}
}

// Publish implements Link.
func (l *pahoLink) Publish(m Message) Receipt {
	return l.client.Publish(m.Topic, m.QoS, m.Retained, m.Payload)
}

// Subscribe implements Link.
func (l *pahoLink) Subscribe(qos byte, filters ...string) error {
	wanted := map[string]byte{}
	for _, f := range filters {
		wanted[f] = qos
	}
	t := l.client.SubscribeMultiple(wanted, nil)
	if !t.WaitTimeout(connectTimeout) {
		return errors.New("the broker does not respond to a subscription; it may be overloaded")
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

// Lost implements Link.
func (l *pahoLink) Lost() <-chan error { return l.lost }

// Close implements Link.
func (l *pahoLink) Close() {
	l.client.Disconnect(500) // the time in milliseconds for sending the queued packets
	l.disconnect()
	l.stopConfirming()
}

// explain returns a sentence with the cause and the remedy of a failed connection attempt. address is the broker's
// "host:port".
func explain(err error, address, clientID string) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword), errors.Is(err, packets.ErrorRefusedNotAuthorised):
		return fmt.Errorf("the broker at %s refuses the user name or the password; check mqtt.user and mqtt.password", address)
	case errors.Is(err, packets.ErrorRefusedIDRejected):
		return fmt.Errorf("the broker at %s refuses the client id %s; allow that id there", address, clientID)
	case errors.Is(err, packets.ErrorRefusedServerUnavailable):
		return fmt.Errorf("the broker at %s refuses connections now; its own log says why", address)
	case errors.As(err, &unknown):
		return fmt.Errorf("the certificate of the broker at %s is signed by an unknown authority; give its authority's certificate as mqtt.ca", address)
	case errors.As(err, &name):
		return fmt.Errorf("the certificate of the broker at %s is for another name; write that name in mqtt.broker", address)
	case errors.As(err, &invalid):
		return fmt.Errorf("the certificate of the broker at %s cannot be used; check its dates and the clock", address)
	case errors.As(err, &record):
		return fmt.Errorf("the server at %s does not speak TLS; use mqtt:// or the port for TLS", address)
	case errors.As(err, &dns):
		host, _, _ := net.SplitHostPort(address) // the address is valid
		return fmt.Errorf("no machine in the network has the name %s; check mqtt.broker", host)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at %s; start the broker or correct mqtt.broker", address)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fmt.Errorf("there is no route to %s; check mqtt.broker and the network", address)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("nothing answers at %s within %s; check mqtt.broker and the broker", address, connectTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("the server at %s closes the connection at once; it may not be an MQTT broker, or it may require TLS", address)
	}
	return fmt.Errorf("connect to the broker at %s: %s", address, strings.ReplaceAll(err.Error(), "\n", " "))
}
