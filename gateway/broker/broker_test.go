package broker

import (
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

// TestGuessingAPasswordTakesTime: each answer to a wrong one is waited for, the
// longer the more are tried at once; a client that knows it waits for none of them, not
// even on the same machine.
func TestGuessingAPasswordTakesTime(t *testing.T) {
	b := started(t)
	began := time.Now()
	var guesses sync.WaitGroup
	for n := range 3 {
		guesses.Go(func() {
			if _, err := loginWith(b.address(), 4, string(rune('a'+n)), "a-wrong-one"); err == nil {
				t.Error("a wrong password opens")
			}
		})
	}
	c, err := login(b.address(), 4, "home-assistant")
	if took := time.Since(began); err != nil || took >= 3*refuseAfter {
		t.Fatalf("the right password: %v after %v", err, took)
	}
	guesses.Wait()
	if took := time.Since(began); took < 3*refuseAfter-200*time.Millisecond {
		t.Errorf("three guesses at once took %v", took)
	}
	_ = c.Close()
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
	c, err := login(b.address(), 4, "home-assistant")
	if err != nil {
		t.Fatalf("another machine with the right password: %v", err)
	}
	_ = c.Close()
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
