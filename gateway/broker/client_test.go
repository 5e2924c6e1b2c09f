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

// client is one that speaks MQTT as the bytes have it.
type client struct {
	net.Conn
	in *bufio.Reader
}

// text is a string of MQTT's.
func text(s string) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...) }

// packet is one of MQTT's.
func packet(kind byte, body ...[]byte) []byte {
	all := slices.Concat(body...)
	return append(binary.AppendUvarint([]byte{kind}, uint64(len(all))), all...)
}

// login is a client that was welcomed, of MQTT 3.1.1 or 5.
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

// loginOn logs in over a connection, which it closes where that is refused.
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

// next is the next packet that comes.
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

// got wants a packet of a kind next, and returns its body.
func (c *client) got(t testing.TB, kind byte) []byte {
	t.Helper()
	is, body, err := c.next()
	if err != nil || is != kind {
		t.Fatalf("%x comes (%v), not %x", is, err, kind)
	}
	return body
}

// ping waits until the broker has handled all that was sent.
func (c *client) ping(t testing.TB) {
	t.Helper()
	c.send(t, 0xc0)
	c.got(t, 0xd0)
}

// subscribe subscribes to a topic; properties are those of MQTT 5.
func (c *client) subscribe(t testing.TB, properties []byte, topic string, qos byte) {
	t.Helper()
	c.send(t, 0x82, []byte{0, 1}, properties, text(topic), []byte{qos})
	c.got(t, 0x90)
}

// connect logs in a client that is connected until the test ends.
func connect(t testing.TB, b *broker, version byte, id string) *client {
	t.Helper()
	c := must.Value(login(b.address(), version, id))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// perchClient is Perch's own client id.
const perchClient = "perch-0a1b2c3d"

// asPerch is a client that takes commands, and does not confirm them yet.
func asPerch(t testing.TB, address string) *client {
	t.Helper()
	c, err := login(address, 4, perchClient)
	must.Succeed(t, err)
	c.subscribe(t, nil, "perch/+/+/set", 1)
	return c
}

// confirms confirms whatever comes, until the test ends.
func (c *client) confirms(t testing.TB) {
	_ = c.SetDeadline(time.Time{})
	var reading sync.WaitGroup
	reading.Go(c.confirmAll)
	t.Cleanup(func() { c.Close(); reading.Wait() })
}

// confirmAll confirms whatever comes, until the connection ends.
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
