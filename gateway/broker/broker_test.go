package broker

import (
	"bufio"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"perch/gateway/door"
)

const password = "the-brokers-own"

// started is a broker that serves until the test ends.
func started(t testing.TB) *broker {
	t.Helper()
	b := listening(t)
	t.Cleanup(b.close)
	return b
}

// listening is a broker that serves until it is closed.
func listening(t testing.TB) *broker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serving(t, l)
}

func serving(t testing.TB, l net.Listener) *broker {
	t.Helper()
	b, err := serve(l, Options{User: "perch", Password: password, Base: "perch", ClientPrefix: perchClient, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *broker) address() string { return b.listener.Addr().String() }

// connect is an MQTT 3.1.1 CONNECT with a user and a password, and the broker's
// answer: 0 is welcome, 5 is not authorised, and -1 a connection that is closed.
func connect(t *testing.T, from, address, id, password string) (code int, conn net.Conn) {
	t.Helper()
	d := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	field := func(s string) []byte { return append([]byte{0, byte(len(s))}, s...) }
	body := append(field("MQTT"), 4, 0xc2, 0, 60) // user, password, clean
	body = append(append(append(body, field(id)...), field("perch")...), field(password)...)
	_ = conn.SetDeadline(time.Now().Add(15 * time.Second))
	if _, err := conn.Write(append([]byte{0x10, byte(len(body))}, body...)); err != nil {
		return -1, conn
	}
	answer := make([]byte, 4)
	r := bufio.NewReader(conn)
	for i := range answer {
		if answer[i], err = r.ReadByte(); err != nil {
			return -1, conn
		}
	}
	return int(answer[3]), conn
}

// TestGuessingAPasswordTakesTime: each answer to a wrong one is waited for, the
// longer the more are tried at once; a client that knows it waits for none of them, not
// even on the same machine.
func TestGuessingAPasswordTakesTime(t *testing.T) {
	b := started(t)
	began := time.Now()
	var guesses sync.WaitGroup
	for n := range 3 {
		guesses.Go(func() {
			code, conn := connect(t, "127.0.0.1", b.address(), string(rune('a'+n)), "a-wrong-one")
			_ = conn.Close()
			if code == 0 {
				t.Error("a wrong password opens")
			}
		})
	}
	code, conn := connect(t, "127.0.0.1", b.address(), "home-assistant", password)
	if took := time.Since(began); code != 0 || took >= 3*refuseAfter {
		t.Errorf("the right password: %d after %v", code, took)
	}
	guesses.Wait()
	if took := time.Since(began); took < 3*refuseAfter-200*time.Millisecond {
		t.Errorf("three guesses at once took %v", took)
	}
	_ = conn.Close()
	b.authentication.mu.Lock()
	defer b.authentication.mu.Unlock()
	if len(b.authentication.refusing) != 0 {
		t.Errorf("of those that have gone is kept: %v", b.authentication.refusing)
	}
}

// TestOneMachineDoesNotFillTheBroker, also with connections that say nothing.
func TestOneMachineDoesNotFillTheBroker(t *testing.T) {
	b := started(t)
	for range 2 * mostConns {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 66)}}).DialContext(t.Context(), "tcp", b.address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	code, conn := connect(t, "127.0.0.1", b.address(), "home-assistant", password)
	_ = conn.Close()
	if code != 0 {
		t.Errorf("another machine with the right password: %d", code)
	}
	b.listener.mu.Lock()
	defer b.listener.mu.Unlock()
	open := map[netip.Addr]int{}
	for conn := range b.listener.open {
		open[door.PeerOf(conn.RemoteAddr().String())]++
	}
	for peer, n := range open {
		if n > mostOfPeer {
			t.Errorf("%d are open from %s", n, peer)
		}
	}
}
