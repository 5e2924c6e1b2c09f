package control

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"perch/limit"
	"perch/must"
)

const topic = "device-server"

// bytesOf returns the encoded packet.
func bytesOf(t testing.TB, p packets.ControlPacket) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(t, p.Write(&b))
	return b.Bytes()
}

// connect returns a CONNECT like that of the firmware.
func connect(keepAlive uint16) *packets.ConnectPacket {
	p := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	p.ProtocolName, p.ProtocolVersion, p.CleanSession, p.Keepalive = "MQTT", 4, true, keepAlive
	p.ClientIdentifier, p.UsernameFlag, p.Username, p.PasswordFlag, p.Password = "robot", true, "user", true, []byte("password")
	return p
}

func publish(to string, text string) *packets.PublishPacket {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Payload = to, []byte(text)
	return p
}

func admitAll(Credentials) (string, error) { return topic, nil }

// accepted returns both ends of a connection whose CONNECT was accepted.
func accepted(t *testing.T, keepAlive uint16) (*Conn, net.Conn) {
	t.Helper()
	ours, robot := net.Pipe()
	t.Cleanup(func() { _ = robot.Close(); _ = ours.Close() })
	go func() { _, _ = robot.Write(bytesOf(t, connect(keepAlive))) }() // ends with the pipe
	type result struct {
		c   *Conn
		err error
	}
	done := make(chan result, 1)
	go func() { c, err := Accept(ours, admitAll); done <- result{c, err} }()
	answer, err := packets.ReadPacket(robot)
	r := <-done
	if ack, is := answer.(*packets.ConnackPacket); err != nil || r.err != nil || !is || ack.ReturnCode != packets.Accepted {
		t.Fatalf("%v %v %v", answer, err, r.err)
	}
	return r.c, robot
}

func TestMessagesBothWays(t *testing.T) {
	c, robot := accepted(t, 240)
	go func() {
		_, _ = robot.Write(bytesOf(t, packets.NewControlPacket(packets.Pingreq)))
		_, _ = robot.Write(bytesOf(t, publish(topic, `{"type":"hello"}`)))
	}()
	pong := make(chan packets.ControlPacket, 1)
	go func() { p, _ := packets.ReadPacket(robot); pong <- p }()
	if got, err := c.Receive(); err != nil || string(got) != `{"type":"hello"}` {
		t.Fatalf("%s %v", got, err)
	}
	if _, is := (<-pong).(*packets.PingrespPacket); !is {
		t.Error("a ping is not answered")
	}
	go func() { _ = c.Send([]byte(`{"type":"goodbye"}`)) }()
	p, err := packets.ReadPacket(robot)
	if got, is := p.(*packets.PublishPacket); err != nil || !is || string(got.Payload) != `{"type":"goodbye"}` || got.Qos != 0 || got.Retain {
		t.Errorf("sent is %v %v", p, err)
	}
	go func() { _, _ = robot.Write(bytesOf(t, packets.NewControlPacket(packets.Disconnect))) }()
	if _, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("after DISCONNECT: %v", err)
	}
}

// TestWhatRobotsDoNotSend checks that packets that robots do not send make Receive return ErrProtocol.
func TestWhatRobotsDoNotSend(t *testing.T) {
	quality := publish(topic, "x")
	quality.Qos = 1
	retained := publish(topic, "x")
	retained.Retain = true
	subscribe := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	subscribe.Topics, subscribe.Qoss = []string{"#"}, []byte{0}
	for name, frame := range map[string][]byte{
		"another topic": bytesOf(t, publish("perch/status", "x")), "QoS 1": bytesOf(t, quality), "retained": bytesOf(t, retained),
		"SUBSCRIBE": bytesOf(t, subscribe), "a second CONNECT": bytesOf(t, connect(0)), "too large": {0x30, 0xff, 0xff, 0x7f},
		"a length of five bytes": {0x30, 0xff, 0xff, 0xff, 0xff, 0x01}, "type 0": {0, 0}, "a topic that is cut": {0x30, 2, 0, 9},
	} {
		t.Run(name, func(t *testing.T) {
			c, robot := accepted(t, 240)
			go func() { _, _ = robot.Write(frame) }()
			if got, err := c.Receive(); !errors.Is(err, ErrProtocol) {
				t.Errorf("%q %v", got, err)
			}
		})
	}
}

// TestConnectIsRefused checks the return codes of refused CONNECT packets, and that anything else gets no response.
func TestConnectIsRefused(t *testing.T) {
	old := connect(0)
	old.ProtocolVersion = 5
	for name, c := range map[string]struct {
		frame  []byte
		answer string
		err    error
	}{
		"password": {bytesOf(t, connect(0)), "\x20\x02\x00\x05", ErrRefused},
		"MQTT 5":   {bytesOf(t, old), "\x20\x02\x00\x01", ErrProtocol},
		"publish":  {bytesOf(t, publish(topic, "x")), "", ErrProtocol},
		"large":    {[]byte{0x10, 0xff, 0x7f}, "", ErrProtocol},
		"HTTP":     {[]byte("GET / HTTP/1.1\r\n\r\n"), "", ErrProtocol},
	} {
		ours, robot := net.Pipe()
		go func() { _, _ = robot.Write(c.frame) }()
		failed := make(chan error, 1)
		go func() {
			_, err := Accept(ours, func(Credentials) (string, error) { return "", errors.New("wrong password") })
			failed <- err
		}()
		answer, _ := io.ReadAll(robot)
		if err := <-failed; string(answer) != c.answer || !errors.Is(err, c.err) {
			t.Errorf("%s: answered %x, %v", name, answer, err)
		}
	}
}

// TestSilence checks that Receive fails after one and a half times the keepalive without a packet.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, robot := accepted(t, 60)
		began := time.Now()
		if _, err := c.Receive(); err == nil || time.Since(began) != 90*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		_ = robot.Close()
	})
}

// TestMosquittoPub checks that an independent client, mosquitto_pub, can publish a message.
func TestMosquittoPub(t *testing.T) {
	if _, err := exec.LookPath("mosquitto_pub"); err != nil {
		t.Skip("mosquitto_pub is not installed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer l.Close()
	host, port, _ := net.SplitHostPort(l.Addr().String())
	pub := exec.Command("mosquitto_pub", "-h", host, "-p", port, "-i", "robot", "-u", "user", "-P", "password", "-t", topic, "-m", "hello")
	must.Succeed(t, pub.Start())
	conn, err := l.Accept()
	must.Succeed(t, err)
	var who Credentials
	c, err := Accept(conn, func(w Credentials) (string, error) { who = w; return topic, nil })
	if err != nil || who != (Credentials{"robot", "user", "password"}) {
		t.Fatalf("%+v %v", who, err)
	}
	if got, err := c.Receive(); err != nil || string(got) != "hello" {
		t.Errorf("%s %v", got, err)
	}
	if _, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("at its end: %v", err)
	}
	c.Close()
	if err := pub.Wait(); err != nil {
		t.Error(err)
	}
}

// fed is a net.Conn whose Read reads from another reader.
type fed struct {
	net.Conn
	from io.Reader
}

func (f fed) Read(b []byte) (int, error)     { return f.from.Read(b) }
func (fed) Write(b []byte) (int, error)      { return len(b), nil }
func (fed) Close() error                     { return nil }
func (fed) SetReadDeadline(time.Time) error  { return nil }
func (fed) SetWriteDeadline(time.Time) error { return nil }

func FuzzConn(f *testing.F) {
	hello := string(bytesOf(f, connect(240)))
	f.Add([]byte(hello))
	f.Add([]byte(hello + string(bytesOf(f, publish(topic, "x"))) + string(bytesOf(f, packets.NewControlPacket(packets.Pingreq)))))
	f.Add([]byte(hello + "\x82\x06\x00\x01\x00\x01#\x00"))
	f.Add([]byte(hello + "\x30\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		c, err := Accept(fed{from: strings.NewReader(string(sent))}, admitAll)
		for err == nil {
			var got []byte
			if got, err = c.Receive(); len(got) > limit.Body {
				t.Errorf("%d bytes", len(got))
			}
		}
	})
}
