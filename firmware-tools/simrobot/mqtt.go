package simrobot

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"perch/device/xiaozhi"
)

// mqttSettings are the settings in the namespace "mqtt" of the flash. They contain no topic to
// subscribe to, because the server sends messages to a robot without a subscription.
type mqttSettings struct {
	Endpoint string `json:"endpoint"` // host:port; TLS if the port is missing or 8883
	Client   string `json:"client_id"`
	User     string `json:"username"`
	Password string `json:"password"`
	Alive    int    `json:"keepalive"` // seconds
	Topic    string `json:"publish_topic"`
}

// storeMQTT stores the mqtt section of a bootstrap in the flash. The flash keeps its values for
// keys that are missing in the section.
func (r *Robot) storeMQTT(o object) {
	m := &r.flash.MQTT
	for key, field := range map[string]*string{"endpoint": &m.Endpoint, "client_id": &m.Client, "username": &m.User, "password": &m.Password,
		"publish_topic": &m.Topic} {
		if s, ok := o.text(key); ok {
			*field = s
		}
	}
	if n, ok := asNumber(o.lookup("keepalive")); ok {
		m.Alive = n
	}
}

const (
	defaultAlive   = 240              // keep-alive in seconds, if the settings contain none
	reconnectAfter = 60 * time.Second // time between the loss of the connection and the next attempt to connect
)

// control is the robot's connection to the MQTT server.
type control struct {
	conn   net.Conn
	topic  string       // topic of published messages
	texts  chan arrival // received messages; the last one has an error
	mu     sync.Mutex   // guards writes to conn
	cancel context.CancelFunc
	tasks  sync.WaitGroup // goroutines of receive and ping
}

// connectMQTT returns the connection to the MQTT server. If the robot is not connected, connectMQTT
// connects, as the firmware does at its start and when it opens a channel.
func (r *Robot) connectMQTT(ctx context.Context) (*control, error) {
	if r.control != nil {
		return r.control, nil
	}
	m := r.flash.MQTT
	if m.Endpoint == "" {
		return nil, ErrMQTT
	}
	host, port, _ := strings.Cut(m.Endpoint, ":")
	port = cmp.Or(port, "8883")
	dialCtx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	var dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{}
	if port == "8883" || r.o.Authorities != nil {
		dialer = &tls.Dialer{Config: &tls.Config{RootCAs: r.o.Authorities, ServerName: host}}
	}
	conn, err := dialer.DialContext(dialCtx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	c := &control{conn: conn, topic: m.Topic, texts: make(chan arrival, 64)}
	if err := c.login(m); err != nil {
		_ = conn.Close()
		return nil, err
	}
	ctx, c.cancel = context.WithCancel(ctx)
	c.tasks.Go(func() { c.receive(ctx, r) })
	c.tasks.Go(func() { c.ping(ctx, time.Duration(cmp.Or(m.Alive, defaultAlive))*time.Second/2) })
	r.control, r.reconnectAt = c, time.Time{}
	r.o.Observe(Connected{Endpoint: m.Endpoint})
	return c, nil
}

// login sends CONNECT and waits for the server's CONNACK.
func (c *control) login(m mqttSettings) error {
	connect := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	connect.ProtocolName, connect.ProtocolVersion, connect.CleanSession = "MQTT", 4, true
	connect.Keepalive = uint16(cmp.Or(m.Alive, defaultAlive))
	connect.ClientIdentifier = m.Client
	connect.UsernameFlag, connect.Username = m.User != "", m.User
	connect.PasswordFlag, connect.Password = m.Password != "", []byte(m.Password)
	if err := c.write(connect); err != nil {
		return err
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(helloTimeout))
	response, err := packets.ReadPacket(c.conn)
	if err != nil {
		return err
	}
	_ = c.conn.SetReadDeadline(time.Time{})
	if ack, ok := response.(*packets.ConnackPacket); !ok || ack.ReturnCode != packets.Accepted {
		return fmt.Errorf("%w: %s", errRefused, response)
	}
	return nil
}

// errRefused is wrapped by the error of login if the server does not accept the connection.
var errRefused = errors.New("the MQTT server refuses the robot")

// write sends a packet.
func (c *control) write(p packets.ControlPacket) error {
	var frame bytes.Buffer
	if err := p.Write(&frame); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(helloTimeout))
	_, err := c.conn.Write(frame.Bytes())
	return err
}

// SendText publishes a message.
func (c *control) SendText(text []byte) error {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Payload = c.topic, text
	return c.write(p)
}

// receive forwards messages and the loss of the connection to c.texts, until the connection is lost or
// ctx ends. After StopReading it reads at most one more message, and then waits for the end of ctx.
func (c *control) receive(ctx context.Context, r *Robot) {
	forward := func(a arrival) bool {
		select {
		case c.texts <- a:
			return a.err == nil
		case <-ctx.Done():
			return false
		}
	}
	for !r.notReading.Load() {
		p, err := packets.ReadPacket(c.conn)
		if err != nil {
			forward(arrival{at: time.Now(), err: err})
			return
		}
		if m, ok := p.(*packets.PublishPacket); ok && !forward(arrival{at: time.Now(), isText: true, data: m.Payload}) {
			return
		}
	}
	<-ctx.Done()
}

// ping sends pings at an interval to keep the connection alive, until ctx ends or a write fails.
func (c *control) ping(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if c.write(packets.NewControlPacket(packets.Pingreq)) != nil {
				return // receive also notices that the connection is lost
			}
		}
	}
}

// disconnectMQTT drops the connection without a DISCONNECT, as when a robot is switched off.
func (r *Robot) disconnectMQTT() {
	if r.control == nil {
		return
	}
	r.control.cancel()
	_ = r.control.conn.Close()
	r.control.tasks.Wait()
	r.control, r.unhandled = nil, nil
}

// connectionLost handles the loss of the connection to the MQTT server, or a failed attempt to connect.
// Like the firmware it schedules the next attempt in a minute.
func (r *Robot) connectionLost(now time.Time, cause error) {
	r.disconnectMQTT()
	r.reconnectAt = now.Add(reconnectAfter)
	r.o.Observe(Disconnected{Why: cause.Error()})
}

// mqttChannel is a channel with MQTT: texts travel over the control connection, and sound over
// UDP. The session sees frames of framing 2, which have timestamps like the datagrams.
type mqttChannel struct {
	*control
	robot     *Robot
	sound     *sound // UDP socket; nil until the server's hello
	datagrams chan xiaozhi.Datagram
	closed    chan struct{}
	once      sync.Once
	bye       func() []byte // returns the robot's goodbye; nil if Drop must send none
	lost      bool          // the control connection has been lost
	frame     []byte        // buffer of Receive
}

// newMQTTChannel returns a channel over a control connection.
func newMQTTChannel(c *control, r *Robot) *mqttChannel {
	return &mqttChannel{control: c, robot: r, datagrams: make(chan xiaozhi.Datagram, 64), closed: make(chan struct{})}
}

// errGoodbye reports that the server closed the channel with a goodbye.
var errGoodbye = errors.New("the server said goodbye")

// Receive waits for the next text or frame of sound. data is valid until the next call.
func (c *mqttChannel) Receive() (isText bool, data []byte, err error) {
	select {
	case a := <-c.texts:
		c.lost = a.err != nil
		return a.isText, a.data, a.err
	case d := <-c.datagrams:
		c.frame = xiaozhi.Framing2.Append(c.frame[:0], d.Audio)
		return false, c.frame, nil
	case <-c.closed:
		return false, nil, io.EOF
	}
}

// SendBinary sends a frame of sound as a datagram. Before the server's hello it drops the frame.
func (c *mqttChannel) SendBinary(frame []byte) error {
	audio, err := xiaozhi.Framing2.Parse(frame)
	if err != nil || c.sound == nil {
		return err
	}
	c.sound.send(audio)
	return nil
}

// Drop sends the robot's goodbye, if any, and closes the channel. The control connection stays open.
func (c *mqttChannel) Drop() {
	c.once.Do(func() {
		if c.bye != nil {
			_ = c.SendText(c.bye()) // a lost connection is noticed by control.receive
		}
		close(c.closed)
		if c.sound != nil {
			c.sound.close()
		}
	})
}

// openSound opens the UDP socket that the udp object of a server's hello describes, like the
// firmware's ParseServerHello.
func (c *mqttChannel) openSound(o object) error {
	udp := xiaozhi.UDP{}
	udp.Server, _ = o.text("server")
	udp.Port, _ = asNumber(o.lookup("port"))
	for name, field := range map[string][]byte{"key": udp.Key[:], "nonce": udp.Nonce[:]} {
		text, _ := o.text(name)
		bytes, err := hex.DecodeString(text)
		if copy(field, bytes); err != nil || len(bytes) != len(field) {
			return fmt.Errorf("hello with a %s that is not %d hexadecimal digits", name, 2*len(field))
		}
	}
	if udp.Server == "" || udp.Port <= 0 || udp.Port > 65535 {
		return errors.New("hello without a valid UDP server and port")
	}
	var err error
	c.sound, err = openSound(udp, c.robot.o.Network, c.datagrams)
	return err
}
