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

// mqtt is namespace "mqtt" of the flash. The firmware reads no topic to subscribe to.
type mqtt struct {
	Endpoint string `json:"endpoint"` // host:port; without a port, or with 8883, TLS
	Client   string `json:"client_id"`
	User     string `json:"username"`
	Password string `json:"password"`
	Alive    int    `json:"keepalive"` // seconds
	Topic    string `json:"publish_topic"`
}

// storeMQTT stores the section. Keys that are missing stay as they were.
func (r *Robot) storeMQTT(o object) {
	m := &r.flash.MQTT
	for key, to := range map[string]*string{"endpoint": &m.Endpoint, "client_id": &m.Client, "username": &m.User, "password": &m.Password,
		"publish_topic": &m.Topic} {
		if s, ok := o.text(key); ok {
			*to = s
		}
	}
	if n, ok := asNumber(o.lookup("keepalive")); ok {
		m.Alive = n
	}
}

const (
	defaultAlive   = 240 // seconds
	reconnectAfter = 60 * time.Second
)

// control is the robot's MQTT connection. One goroutine receives.
type control struct {
	conn   net.Conn
	topic  string
	texts  chan arrival // the last one has an error
	mu     sync.Mutex   // of writing
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// online returns the connection, and connects if necessary, as the firmware does at its start
// and when it opens a channel.
func (r *Robot) online(ctx context.Context) (*control, error) {
	if r.control != nil {
		return r.control, nil
	}
	m := r.flash.MQTT
	if m.Endpoint == "" {
		return nil, ErrMQTT
	}
	host, port, _ := strings.Cut(m.Endpoint, ":")
	port = cmp.Or(port, "8883")
	dialing, cancel := context.WithTimeout(ctx, helloLimit)
	defer cancel()
	var dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{}
	if port == "8883" || r.o.Authorities != nil {
		dialer = &tls.Dialer{Config: &tls.Config{RootCAs: r.o.Authorities, ServerName: host}}
	}
	conn, err := dialer.DialContext(dialing, "tcp", net.JoinHostPort(host, port))
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

func (c *control) login(m mqtt) error {
	hello := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	hello.ProtocolName, hello.ProtocolVersion, hello.CleanSession = "MQTT", 4, true
	hello.Keepalive = uint16(cmp.Or(m.Alive, defaultAlive))
	hello.ClientIdentifier = m.Client
	hello.UsernameFlag, hello.Username, hello.PasswordFlag, hello.Password = m.User != "", m.User, m.Password != "", []byte(m.Password)
	if err := c.write(hello); err != nil {
		return err
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(helloLimit))
	answer, err := packets.ReadPacket(c.conn)
	if err != nil {
		return err
	}
	_ = c.conn.SetReadDeadline(time.Time{})
	if ack, is := answer.(*packets.ConnackPacket); !is || ack.ReturnCode != packets.Accepted {
		return fmt.Errorf("%w: %s", errRefused, answer)
	}
	return nil
}

var errRefused = errors.New("the MQTT server refuses the robot")

func (c *control) write(p packets.ControlPacket) error {
	var frame bytes.Buffer
	if err := p.Write(&frame); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(helloLimit))
	_, err := c.conn.Write(frame.Bytes())
	return err
}

// SendText publishes a message.
func (c *control) SendText(text []byte) error {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Payload = c.topic, text
	return c.write(p)
}

// receive forwards what is published to the robot, until the connection is lost.
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
		if m, is := p.(*packets.PublishPacket); is && !forward(arrival{at: time.Now(), isText: true, data: m.Payload}) {
			return
		}
	}
	<-ctx.Done()
}

func (c *control) ping(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if c.write(packets.NewControlPacket(packets.Pingreq)) != nil {
				return // the receiver notices the loss
			}
		}
	}
}

// offline drops the connection, without a DISCONNECT: a robot is switched off.
func (r *Robot) offline() {
	if r.control == nil {
		return
	}
	r.control.cancel()
	_ = r.control.conn.Close()
	r.control.tasks.Wait()
	r.control, r.unhandled = nil, nil
}

// connectionLost handles the loss of the connection. The firmware connects again a minute
// later, unless it talks.
func (r *Robot) connectionLost(now time.Time, why error) {
	r.offline()
	r.reconnectAt = now.Add(reconnectAfter)
	r.o.Observe(Disconnected{Why: why.Error()})
}

// talkChannel is a channel by MQTT: texts by the control connection, sound by UDP.
// To the session its sound is in framing 2, which has timestamps as datagrams do.
type talkChannel struct {
	*control
	robot     *Robot
	sound     *sound // nil before the server's hello
	datagrams chan xiaozhi.Datagram
	closed    chan struct{}
	once      sync.Once
	bye       func() []byte // returns the robot's goodbye; nil once the server has closed the channel
	lost      bool          // the connection is lost
	frame     []byte
}

func newTalkChannel(c *control, r *Robot) *talkChannel {
	return &talkChannel{control: c, robot: r, datagrams: make(chan xiaozhi.Datagram, 64), closed: make(chan struct{})}
}

// errGoodbye reports a channel that the server closed.
var errGoodbye = errors.New("the server said goodbye")

func (c *talkChannel) Receive() (isText bool, data []byte, err error) {
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

func (c *talkChannel) SendBinary(frame []byte) error {
	audio, err := xiaozhi.Framing2.Parse(frame)
	if err != nil || c.sound == nil {
		return err
	}
	c.sound.send(audio)
	return nil
}

// Drop closes the channel. The control connection stays open.
func (c *talkChannel) Drop() {
	c.once.Do(func() {
		if c.bye != nil {
			_ = c.SendText(c.bye()) // the receiver notices a lost connection
		}
		close(c.closed)
		if c.sound != nil {
			c.sound.close()
		}
	})
}

// openSound opens the UDP socket that a server's hello describes (ParseServerHello).
func (c *talkChannel) openSound(o object) error {
	secret := xiaozhi.UDP{}
	secret.Server, _ = o.text("server")
	secret.Port, _ = asNumber(o.lookup("port"))
	for name, to := range map[string][]byte{"key": secret.Key[:], "nonce": secret.Nonce[:]} {
		text, _ := o.text(name)
		bytes, err := hex.DecodeString(text)
		if copy(to, bytes); err != nil || len(bytes) != len(to) {
			return fmt.Errorf("hello with a %s that is not %d hexadecimal digits", name, 2*len(to))
		}
	}
	if secret.Server == "" || secret.Port <= 0 || secret.Port > 65535 {
		return errors.New("hello without a UDP server, or with a bad one")
	}
	var err error
	c.sound, err = openSound(secret, c.robot.o.Network, c.datagrams)
	return err
}
