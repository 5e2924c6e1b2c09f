// Package control serves the MQTT connection that a robot holds open while it runs (MQTT 3.1.1). The
// firmware sends only CONNECT, PUBLISH with QoS 0, PINGREQ and DISCONNECT. It subscribes to no topic, but
// expects messages anyway. This is not a broker: each connection is between one robot and the appliance,
// and no message passes from one robot to another.
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
	connectTimeout = 10 * time.Second
	writeTimeout   = 5 * time.Second
	maxConnectSize = 1 << 10          // bytes of a CONNECT
	maxSilence     = 10 * time.Minute // maximum of Conn.maxSilence, for any keepalive; the keepalive of the firmware allows six minutes
)

// Credentials are the login of a robot's CONNECT.
type Credentials struct{ ClientID, Username, Password string }

// Errors of a connection.
var (
	// ErrProtocol is wrapped by the error for a packet that is invalid, or that the firmware does not send.
	ErrProtocol = errors.New("this is not the MQTT of a robot")
	// ErrRefused is wrapped by the error of Accept if admit has returned an error.
	ErrRefused = errors.New("the robot's MQTT login is refused")
)

// Conn is a robot's connection. Receive must be called by one goroutine only; Send and Close may be called
// by any.
type Conn struct {
	conn       net.Conn
	topic      string        // the only topic that the robot may publish to
	maxSilence time.Duration // silence after which the connection counts as broken
	mu         sync.Mutex    // held while a packet is written
}

// Accept reads the CONNECT of a connection and responds to it. admit checks the credentials, and returns
// the only topic that the robot may publish to. If Accept returns an error, it has closed the connection.
func Accept(conn net.Conn, admit func(Credentials) (topic string, err error)) (*Conn, error) {
	c := &Conn{conn: conn}
	if err := c.open(admit); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// open performs the login of Accept.
func (c *Conn) open(admit func(Credentials) (topic string, err error)) error {
	if err := c.conn.SetReadDeadline(time.Now().Add(connectTimeout)); err != nil {
		return err
	}
	packet, err := readPacket(c.conn, maxConnectSize, packets.Connect)
	if err != nil {
		return err
	}
	connect := packet.(*packets.ConnectPacket)
	code := connect.Validate()
	if code == packets.Accepted {
		c.topic, err = admit(Credentials{connect.ClientIdentifier, connect.Username, string(connect.Password)})
		if err != nil {
			code = packets.ErrRefusedNotAuthorised
		}
	}
	response := packets.NewControlPacket(packets.Connack).(*packets.ConnackPacket)
	response.ReturnCode = code
	if err := c.write(response); err != nil {
		return err
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case code != packets.Accepted:
		return fmt.Errorf("%w: %w", ErrProtocol, packets.ConnErrors[code])
	}
	c.maxSilence = maxSilence
	if connect.Keepalive > 0 { // MQTT 3.1.1 section 3.1.2.10: one and a half times the keepalive
		c.maxSilence = min(maxSilence, time.Duration(connect.Keepalive)*3*time.Second/2)
	}
	return nil
}

// Receive waits for a message from the robot, and responds to its PINGREQ packets. It returns io.EOF after DISCONNECT,
// and an error that wraps os.ErrDeadlineExceeded if no packet arrives for one and a half times the keepalive, or for ten
// minutes if that is shorter or the keepalive is 0.
func (c *Conn) Receive() ([]byte, error) {
	for {
		if err := c.conn.SetReadDeadline(time.Now().Add(c.maxSilence)); err != nil {
			return nil, err
		}
		packet, err := readPacket(c.conn, limit.Body, packets.Publish, packets.Pingreq, packets.Disconnect)
		if err != nil {
			return nil, err
		}
		switch p := packet.(type) {
		case *packets.PublishPacket:
			if p.Qos != 0 || p.Retain || p.TopicName != c.topic {
				return nil, fmt.Errorf("%w: it publishes to %q with QoS %d; it may only publish to %q with QoS 0, not retained", ErrProtocol, p.TopicName, p.Qos, c.topic)
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

// Close closes the connection and wakes Receive.
func (c *Conn) Close() { _ = c.conn.Close() }

func (c *Conn) write(p packets.ControlPacket) error {
	var frame bytes.Buffer
	if err := p.Write(&frame); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := c.conn.Write(frame.Bytes())
	return err
}

// readPacket reads a packet. It returns an error without reading the body if the packet's type is not in
// types, or if the packet is larger than maxSize bytes.
func readPacket(r io.Reader, maxSize int, types ...byte) (packets.ControlPacket, error) {
	frame := make([]byte, 1, 64)
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	if kind := frame[0] >> 4; !slices.Contains(types, kind) {
		return nil, fmt.Errorf("%w: it sends %s", ErrProtocol, cmp.Or(packets.PacketNames[kind], "a packet of an unknown type"))
	}
	size := 0
	for shift := 0; ; shift += 7 { // length of the rest of the packet, MQTT 3.1.1 section 2.2.3
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
	if size > maxSize {
		return nil, fmt.Errorf("%w: it sends a packet of %d bytes; the limit is %d", ErrProtocol, size, maxSize)
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
