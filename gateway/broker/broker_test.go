package broker

import (
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"perch/gateway/httpserver"
	"perch/must"
)

const password = "the-brokers-own"

// started returns a broker that serves until the test ends.
func started(t testing.TB) *broker {
	t.Helper()
	b := listening(t)
	t.Cleanup(b.close)
	return b
}

// listening returns a broker that serves until it is closed.
func listening(t testing.TB) *broker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	return serving(t, l)
}

func serving(t testing.TB, l net.Listener) *broker {
	t.Helper()
	b, err := serve(l, Options{User: "perch", Password: password, Base: "perch", ClientPrefix: perchClient, Log: slog.New(slog.DiscardHandler)})
	must.Succeed(t, err)
	return b
}

func (b *broker) address() string { return b.listener.Addr().String() }

// pipes is a listener of in-memory connections, for tests in a synctest bubble.
type pipes struct {
	calls chan net.Conn
	once  sync.Once
}

func (l *pipes) dial() net.Conn {
	client, server := net.Pipe()
	l.calls <- server
	return client
}

func (l *pipes) Accept() (net.Conn, error) {
	conn, open := <-l.calls
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l *pipes) Close() error   { l.once.Do(func() { close(l.calls) }); return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestWrongPasswordsAreDelayed tests that the refusal of a wrong password is delayed, longer if more are tried at the same
// time, and that a client with the right password is not delayed, even if it has the same address.
func TestWrongPasswordsAreDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{calls: make(chan net.Conn)}
		b := serving(t, l)
		defer b.close()
		began := time.Now()
		refused := make(chan time.Duration, 3)
		for n := range 3 {
			go func() {
				if _, err := loginOn(l.dial(), 4, string(rune('a'+n)), "a-wrong-one"); err == nil {
					t.Error("a wrong password opens")
				}
				refused <- time.Since(began)
			}()
		}
		synctest.Wait()
		c, err := loginOn(l.dial(), 4, "home-assistant", password)
		if took := time.Since(began); err != nil || took > 0 {
			t.Fatalf("the right password: %v after %v", err, took)
		}
		for n := range time.Duration(3) {
			if took := <-refused; took != (n+1)*refusalDelay {
				t.Errorf("of three guesses at once, one is refused after %v", took)
			}
		}
		_ = c.Close()
		b.authentication.mu.Lock()
		defer b.authentication.mu.Unlock()
		if len(b.authentication.refusing) != 0 {
			t.Errorf("of those that have gone is kept: %v", b.authentication.refusing)
		}
	})
}

// TestWrongPasswordsAreLogged tests that the child process reports each wrong password, and that the parent process logs
// at most ten at once.
func TestWrongPasswordsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		parent := newChildLog(slog.New(slog.NewTextHandler(&logged, nil)))
		parent.read = maxOutput // earlier output must not suppress the warning
		over := make(chan struct{})
		close(over)
		a := &authentication{log: slog.New(slog.NewTextHandler(parent, &slog.HandlerOptions{ReplaceAttr: withoutTime})),
			over: over, refusing: map[netip.Addr]int{}}
		for range 50 {
			a.OnConnectAuthenticate(&mochi.Client{Net: mochi.ClientConnection{Remote: "192.0.2.7:1234"}}, packets.Packet{})
		}
		if text := logged.String(); strings.Count(text, "level=WARN") != 10 || !strings.Contains(text, "address=192.0.2.7\n") {
			t.Errorf("logged is %s", text)
		}
	})
}

// TestConnectionsOfOneAddressAreBounded tests that at most maxConnsPerPeer connections from one address are open, even if
// they are silent, and that a client with another address can log in.
func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	b := started(t)
	for range 2 * maxConns {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 66)}}).DialContext(t.Context(), "tcp", b.address())
		must.Succeed(t, err)
		defer conn.Close()
	}
	c, err := login(b.address(), 4, "home-assistant")
	if err != nil {
		t.Fatalf("another machine with the right password: %v", err)
	}
	_ = c.Close()
	b.listener.mu.Lock()
	defer b.listener.mu.Unlock()
	open := map[netip.Addr]int{}
	for conn := range b.listener.open {
		open[httpserver.PeerOf(conn.RemoteAddr().String())]++
	}
	for peer, n := range open {
		if n > maxConnsPerPeer {
			t.Errorf("%d are open from %s", n, peer)
		}
	}
}

// TestGoodbyeOfTheBroker tests that the broker sends DISCONNECT when it ends to clients of MQTT 5, and not to clients of
// MQTT 3.1.1, where Home Assistant's client reports the packet as an error.
func TestGoodbyeOfTheBroker(t *testing.T) {
	for version, want := range map[byte]byte{4: 0, 5: 0xE0} {
		b := listening(t)
		ended := connect(t, b, version, "home-assistant")
		ended.ping(t)
		b.close()
		if kind, _, err := ended.next(); kind != want {
			t.Errorf("to a client of version %d the broker sent %x, %v as it ended; want %x", version, kind, err, want)
		}

		b = started(t)
		replaced := connect(t, b, version, "home-assistant")
		replaced.ping(t)
		connect(t, b, version, "home-assistant")
		if kind, _, err := replaced.next(); kind != want {
			t.Errorf("to a client of version %d the broker sent %x, %v as another took its place; want %x", version, kind, err, want)
		}
	}
}
