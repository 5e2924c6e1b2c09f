// Package control serves the MQTT connection that a robot holds open while it runs (MQTT 3.1.1). The
// firmware needs little of MQTT: CONNECT, PUBLISH of QoS 0, PINGREQ, DISCONNECT. It subscribes to
// nothing, and expects messages all the same. This is no broker: a connection is between one robot
// and the appliance, and robots share nothing.
package control

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"perch/limit"
)

// Limits of a connection.
const (
	connectWithin = 10 * time.Second
	writeWithin   = 5 * time.Second
	mostConnect   = 1 << 10          // bytes of a CONNECT
	longestSilent = 10 * time.Minute // no matter which keepalive it wants; the firmware's makes six
)

// Credentials are what a robot connects with.
type Credentials struct{ ClientID, Username, Password string }

// Errors of a connection. ErrProtocol is wrapped for packets that the firmware does not send.
var (
	ErrProtocol = errors.New("this is not the MQTT of a robot")
	ErrRefused  = errors.New("the robot's MQTT login is refused")
)

// Conn is a robot's connection. One goroutine calls Receive; Send and Close may be
// called by any.
type Conn struct {
	conn   net.Conn
	topic  string        // that it may publish to
	silent time.Duration // after which it is gone
	mu     sync.Mutex    // of writing
}

// Accept reads the CONNECT of a connection and answers it. admit returns the only topic that the robot
// may publish to, or why it is refused. If Accept returns an error, it has closed the connection.
func Accept(conn net.Conn, admit func(Credentials) (topic string, err error)) (*Conn, error) {
	c := &Conn{conn: conn}
	if err := c.open(admit); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) open(admit func(Credentials) (topic string, err error)) error {
	if err := c.conn.SetReadDeadline(time.Now().Add(connectWithin)); err != nil {
		return err
	}
	packet, err := read(c.conn, mostConnect, packets.Connect)
	if err != nil {
		return err
	}
	hello := packet.(*packets.ConnectPacket)
	code := hello.Validate()
	if code == packets.Accepted {
		c.topic, err = admit(Credentials{hello.ClientIdentifier, hello.Username, string(hello.Password)})
		if err != nil {
			code = packets.ErrRefusedNotAuthorised
		}
	}
	answer := packets.NewControlPacket(packets.Connack).(*packets.ConnackPacket)
	answer.ReturnCode = code
	if sent := c.write(answer); sent != nil {
		return sent
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case code != packets.Accepted:
		return fmt.Errorf("%w: %w", ErrProtocol, packets.ConnErrors[code])
	}
	c.silent = longestSilent
	if hello.Keepalive > 0 { // section 3.1.2.10
		c.silent = min(longestSilent, time.Duration(hello.Keepalive)*3*time.Second/2)
	}
	return nil
}

// Receive waits for a message of the robot. It returns io.EOF after DISCONNECT, and
// os.ErrDeadlineExceeded after one and a half times the keepalive.
func (c *Conn) Receive() ([]byte, error) {
	for {
		if err := c.conn.SetReadDeadline(time.Now().Add(c.silent)); err != nil {
			return nil, err
		}
		packet, err := read(c.conn, limit.Body, packets.Publish, packets.Pingreq, packets.Disconnect)
		if err != nil {
			return nil, err
		}
		switch p := packet.(type) {
		case *packets.PublishPacket:
			if p.Qos != 0 || p.Retain || p.TopicName != c.topic {
				return nil, fmt.Errorf("%w: it publishes to %q with QoS %d; only %q with QoS 0 is for it", ErrProtocol, p.TopicName, p.Qos, c.topic)
			}
			return p.Payload, nil
		case *packets.PingreqPacket:
			if err := c.write(packets.NewControlPacket(packets.Pingresp)); err != nil {
				return nil, err
			}
		default: // DISCONNECT
			return nil, io.EOF
		}
	}
}

// Send publishes a message to the robot.
func (c *Conn) Send(message []byte) error {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Payload = c.topic, message
	return c.write(p)
}

// Close ends the connection and wakes Receive.
func (c *Conn) Close() { _ = c.conn.Close() }

func (c *Conn) write(p packets.ControlPacket) error {
	var frame bytes.Buffer
	if err := p.Write(&frame); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	_, err := c.conn.Write(frame.Bytes())
	return err
}

// read reads one packet of one of the types. It checks type and size before it reads the body.
func read(r io.Reader, most int, types ...byte) (packets.ControlPacket, error) {
	frame := make([]byte, 1, 64)
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	if kind := frame[0] >> 4; !slices.Contains(types, kind) {
		return nil, fmt.Errorf("%w: it sends %s", ErrProtocol, cmp.Or(packets.PacketNames[kind], "no packet"))
	}
	size := 0
	for shift := 0; ; shift += 7 { // section 2.2.3
		if shift > 21 {
			return nil, fmt.Errorf("%w: its length has more than four bytes", ErrProtocol)
		}
		frame = append(frame, 0)
		last := frame[len(frame)-1:]
		if _, err := io.ReadFull(r, last); err != nil {
			return nil, err
		}
		size |= int(last[0]&0x7f) << shift
		if last[0] < 0x80 {
			break
		}
	}
	if size > most {
		return nil, fmt.Errorf("%w: a packet of %d bytes; at most %d are taken", ErrProtocol, size, most)
	}
	head := len(frame)
	frame = append(frame, make([]byte, size)...)
	if _, err := io.ReadFull(r, frame[head:]); err != nil {
		return nil, err
	}
	packet, err := packets.ReadPacket(bytes.NewReader(frame))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return packet, nil
}
