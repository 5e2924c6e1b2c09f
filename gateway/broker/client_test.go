package broker

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/must"
)

// client is an MQTT client that sends and receives packets as bytes.
type client struct {
	net.Conn
	in *bufio.Reader
}

// text encodes an MQTT string.
func text(s string) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...) }

// packet returns an MQTT packet. kind is its first byte.
func packet(kind byte, body ...[]byte) []byte {
	all := slices.Concat(body...)
	return append(binary.AppendUvarint([]byte{kind}, uint64(len(all))), all...)
}

// login connects a client and logs in. version is 4 for MQTT 3.1.1, or 5.
func login(address string, version byte, id string) (*client, error) {
	network := "tcp"
	if strings.Contains(address, "/") {
		network = "unix"
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return loginOn(conn, version, id, password)
}

// loginOn logs in over a connection. It closes the connection if the login is refused.
func loginOn(conn net.Conn, version byte, id, password string) (*client, error) {
	c := &client{conn, bufio.NewReader(conn)}
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	head := []byte{version, 0xc2, 0, 60}
	if version == 5 {
		head = append(head, 0)
	}
	_, err := conn.Write(packet(0x10, text("MQTT"), head, text(id), text("perch"), text(password)))
	var kind byte
	var body []byte
	if err == nil {
		kind, body, err = c.next()
	}
	if err == nil && (kind != 0x20 || body[1] != 0) {
		err = fmt.Errorf("%x %x", kind, body)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// next waits for the next packet and returns its first byte and its body.
func (c *client) next() (kind byte, body []byte, err error) {
	if kind, err = c.in.ReadByte(); err != nil {
		return 0, nil, err
	}
	length, err := binary.ReadUvarint(c.in)
	if err != nil {
		return 0, nil, err
	}
	body = make([]byte, length)
	_, err = io.ReadFull(c.in, body)
	return kind, body, err
}

// send sends a packet.
func (c *client) send(t testing.TB, kind byte, body ...[]byte) {
	t.Helper()
	must.Value(c.Write(packet(kind, body...)))(t)
}

// got waits for the next packet, which must begin with kind, and returns its body.
func (c *client) got(t testing.TB, kind byte) []byte {
	t.Helper()
	is, body, err := c.next()
	if err != nil || is != kind {
		t.Fatalf("%x comes (%v), not %x", is, err, kind)
	}
	return body
}

// ping waits until the broker has handled all packets that the client has sent.
func (c *client) ping(t testing.TB) {
	t.Helper()
	c.send(t, 0xc0)
	c.got(t, 0xd0)
}

// subscribe subscribes to a topic. properties are the encoded properties of MQTT 5, or nil for MQTT 3.1.1.
func (c *client) subscribe(t testing.TB, properties []byte, topic string, qos byte) {
	t.Helper()
	c.send(t, 0x82, []byte{0, 1}, properties, text(topic), []byte{qos})
	c.got(t, 0x90)
}

// connect returns a client that is logged in until the test ends.
func connect(t testing.TB, b *broker, version byte, id string) *client {
	t.Helper()
	c := must.Value(login(b.address(), version, id))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// perchClient is the client ID of Perch.
const perchClient = "perch-0a1b2c3d"

// asPerch returns a client with the ID of Perch that receives commands. It confirms none before confirms is called.
func asPerch(t testing.TB, address string) *client {
	t.Helper()
	c, err := login(address, 4, perchClient)
	must.Succeed(t, err)
	c.subscribe(t, nil, "perch/+/+/set", 1)
	return c
}

// confirms starts a goroutine that confirms all messages until the test ends.
func (c *client) confirms(t testing.TB) {
	_ = c.SetDeadline(time.Time{})
	var reading sync.WaitGroup
	reading.Go(c.confirmAll)
	t.Cleanup(func() { c.Close(); reading.Wait() })
}

// confirmAll confirms all messages with QoS 1 until the connection ends.
func (c *client) confirmAll() {
	for {
		kind, body, err := c.next()
		if err != nil {
			return
		}
		if kind&0xf6 == 0x32 { // a message with QoS 1
			topic := int(binary.BigEndian.Uint16(body))
			_, _ = c.Write(packet(0x40, body[2+topic:4+topic]))
		}
	}
}
