package broker

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"perch/must"
)

// eightBytes is a SUBSCRIBE packet of MQTT 5 that ends before its subscription options. The library panics on this packet.
var eightBytes = []byte{0x82, 0x06, 0x00, 0x01, 0x00, 0x00, 0x01, 0x61}

// TestPacketsThatCannotBeDecoded tests that a packet that cannot be decoded ends its connection and no other.
func TestPacketsThatCannotBeDecoded(t *testing.T) {
	b := started(t)
	for name, sent := range map[string][]byte{
		"the eight bytes": eightBytes, "a length of five bytes": {0x30, 0xff, 0xff, 0xff, 0xff, 0x01}, "of 256 MB": {0x30, 0xff, 0xff, 0xff, 0x7f},
		"no such type": {0xf0, 0}, "wrong flags": {0x83, 0}, "an answer of brokers'": {0x20, 2, 0, 0},
	} {
		for _, version := range []byte{4, 5} {
			c := connect(t, b, version, "stranger")
			if _, err := c.Write(sent); err != nil {
				t.Fatal(err)
			}
			if version == 5 || name != "the eight bytes" { // in MQTT 3.1.1 these bytes have another meaning
				if _, err := io.Copy(io.Discard, c.in); err != nil && !errors.Is(err, io.EOF) && !isReset(err) {
					t.Errorf("%s: still inside: %v", name, err)
				}
			}
		}
	}
	c := connect(t, b, 5, "another")
	c.ping(t)
}

func isReset(err error) bool {
	var late interface{ Timeout() bool }
	return !errors.As(err, &late) || !late.Timeout()
}

// TestPacketsAreReturnedWhole tests that packets are returned unchanged, however their bytes arrive.
func TestPacketsAreReturnedWhole(t *testing.T) {
	connect := packet(0x10, text("MQTT"), []byte{5, 2, 0, 60, 0}, text("a"))
	message := packet(0x30, text("topic"), []byte{0}, bytes.Repeat([]byte("x"), 3*maxIdleBuffer))
	all := bytes.Join([][]byte{connect, message, packet(0xc0), message}, nil)
	for name, from := range map[string]io.Reader{"at once": bytes.NewReader(all), "byte by byte": iotest.OneByteReader(bytes.NewReader(all))} {
		var r reader
		got, err := io.ReadAll(readerOf(func(p []byte) (int, error) { return r.read(from, p) }))
		if err != nil || !bytes.Equal(got, all) || r.version != 5 {
			t.Errorf("%s: %d of %d bytes, version %d (%v)", name, len(got), len(all), r.version, err)
		}
	}
}

type readerOf func(p []byte) (int, error)

func (f readerOf) Read(p []byte) (int, error) { return f(p) }

// FuzzAfterLogin tests that the broker still serves other clients after a client that is logged in has sent any bytes.
func FuzzAfterLogin(f *testing.F) {
	f.Add(true, eightBytes)
	f.Add(false, eightBytes)
	f.Add(true, bytes.Join([][]byte{packet(0x82, []byte{0, 1, 0}, text("#"), []byte{2}), packet(0x31, text("a/b"), []byte{0}, []byte("kept"))}, nil))
	f.Add(false, bytes.Join([][]byte{packet(0x32, text("perch/a/say/set"), []byte{0, 2}, []byte("x")), packet(0x34, text("a"), []byte{0, 3}),
		packet(0x62, []byte{0, 3})}, nil))
	f.Add(true, bytes.Join([][]byte{packet(0x30, text("a"), []byte{3, 0x23, 0, 1}), packet(0xa2, []byte{0, 1, 0}, text("#")),
		packet(0xe0, []byte{0x04, 0x05, 0x11, 0, 0, 0, 9})}, nil))
	f.Add(true, packet(0x82, []byte{0, 1, 0}, text("$share/g/#"), []byte{1}))
	const renew = 2000 // inputs for one broker, whose retained messages need more and more memory
	b, n := (*served)(nil), 0
	f.Cleanup(func() {
		if b != nil {
			b.end()
		}
	})
	f.Fuzz(func(t *testing.T, five bool, sent []byte) {
		if n++; b == nil || n%renew == 0 {
			if b != nil {
				b.end()
			}
			b = newServed(t)
		}
		version := byte(4)
		if five {
			version = 5
		}
		c, err := login(b.address(), version, "fuzz")
		must.Succeed(t, err)
		_, err = c.Write(append(append(bytes.Clone(sent), packet(0xc0)...), packet(0xe0)...))
		if err == nil {
			_ = c.Conn.(*net.UnixConn).CloseWrite() // so that the broker does not wait for the rest of an incomplete packet
			_, _ = io.Copy(io.Discard, c.in)        // until the broker closes the connection
		}
		c.Close()
		_ = b.steady.SetDeadline(time.Now().Add(10 * time.Second))
		b.steady.ping(t)
	})
}

// served is a broker with two clients that stay connected.
type served struct {
	*broker
	perch, steady *client
	dir           string
	ended         chan struct{}
}

func newServed(t *testing.T) *served {
	t.Helper()
	// A Unix socket, because thousands of TCP connections a second would use up the ports.
	dir, err := os.MkdirTemp("", "perch-fuzz-")
	must.Succeed(t, err)
	l, err := net.Listen("unix", filepath.Join(dir, "mqtt"))
	must.Succeed(t, err)
	s := &served{broker: serving(t, l), dir: dir, ended: make(chan struct{})}
	s.perch = asPerch(t, s.address())
	_ = s.perch.SetDeadline(time.Time{})
	go func() {
		defer close(s.ended)
		s.perch.confirmAll()
	}()
	if s.steady, err = login(s.address(), 4, "steady"); err != nil {
		t.Fatal(err)
	}
	s.steady.in = bufio.NewReader(s.steady.Conn)
	return s
}

func (s *served) end() {
	s.perch.Close()
	s.steady.Close()
	<-s.ended
	s.close()
	_ = os.RemoveAll(s.dir)
}
