package httpserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
)

// fakeConn is a connection from an address.
type fakeConn struct {
	net.Conn
	from   string
	closed atomic.Bool
	until  time.Time // write deadline
}

func (s *fakeConn) RemoteAddr() net.Addr { return named(s.from) }
func (*fakeConn) LocalAddr() net.Addr    { return named("192.168.1.2:8003") }
func (s *fakeConn) Close() error         { s.closed.Store(true); return nil }

func (s *fakeConn) SetDeadline(t time.Time) error      { return s.SetWriteDeadline(t) }
func (s *fakeConn) SetWriteDeadline(t time.Time) error { s.until = t; return nil }
func (s *fakeConn) Write(p []byte) (int, error)        { return len(p), nil }

// named is a net.Addr with a given text.
type named string

func (named) Network() string  { return "tcp" }
func (n named) String() string { return string(n) }

// fakeListener is a listener that accepts the connections of a channel. For a nil connection Accept returns errNoMore.
type fakeListener struct{ coming chan net.Conn }

func (s *fakeListener) Accept() (net.Conn, error) {
	c, open := <-s.coming
	switch {
	case !open:
		return nil, net.ErrClosed
	case c == nil:
		return nil, errNoMore
	}
	return c, nil
}
func (s *fakeListener) Close() error { return nil }
func (*fakeListener) Addr() net.Addr { return named("192.168.1.2:8003") }

// errNoMore is returned by fakeListener.Accept after the last connection of a test step.
var errNoMore = errors.New("no more connections")

// connect makes connections from the addresses. It returns the accepted connections and the number of the refused ones.
func connect(t *testing.T, c net.Listener, s *fakeListener, addresses ...string) (in []net.Conn, turnedAway int) {
	t.Helper()
	all := make([]*fakeConn, len(addresses))
	go func() {
		for i, from := range addresses {
			all[i] = &fakeConn{from: from}
			s.coming <- all[i]
		}
		s.coming <- nil
	}()
	for {
		conn, err := c.Accept()
		if errors.Is(err, errNoMore) {
			break
		}
		must.Succeed(t, err)
		in = append(in, conn)
	}
	for _, one := range all {
		if one.closed.Load() {
			turnedAway++
		}
	}
	return in, turnedAway
}

func many(n int, format string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}

// TestConnectionsAreBounded checks the limit of all connections, and the limit of the connections of one peer, which may
// use any address of its network. It also checks that a closed connection makes room for another.
func TestConnectionsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		format string
		most   int
	}{
		"IPv4":          {"192.168.1.66:%d", maxConnsOfPeer},
		"one /64":       {"[2001:db8::%x]:4000", maxConnsOfPeer},
		"link-local":    {"[fe80::%x%%eth0]:4000", maxConnsOfPeer},
		"loopback":      {"127.0.0.1:%d", maxLocalConns},
		"IPv6 loopback": {"[::1]:%d", maxLocalConns},
		"this machine":  {"192.168.1.2:%d", maxLocalConns},
		"many machines": {"[2001:db8:0:%x::1]:4000", maxConns},
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeListener{make(chan net.Conn)}
			var log bytes.Buffer
			l := LimitListener(s, slog.New(slog.NewTextHandler(&log, nil)))
			in, away := connect(t, l, s, many(10_000, c.format)...)
			if len(in) != c.most || away != 10_000-c.most {
				t.Fatalf("%d were let in and %d turned away, want %d in", len(in), away, c.most)
			}
			if lines := strings.Count(log.String(), "are refused"); lines != 1 {
				t.Errorf("that was logged %d times", lines)
			}
			if c.most != maxLocalConns { // the watchdog, on this machine, can still connect
				for _, own := range []string{"127.0.0.1:1", "192.168.1.2:1", "@"} {
					if in, _ := connect(t, l, s, own); len(in) != 1 {
						t.Errorf("%s was kept out", own)
					}
				}
			}
			if c.most < maxConns {
				if others, _ := connect(t, l, s, "192.168.1.7:1", "[2001:db8:1::1]:1"); len(others) != 2 {
					t.Errorf("of two other machines %d were let in", len(others))
				}
			}
			_ = in[0].Close()
			_ = in[0].Close() // the second Close frees no further slot
			if next, _ := connect(t, l, s, many(2, c.format)...); len(next) != 1 {
				t.Errorf("one left, and %d came in", len(next))
			}
		})
	}
}

// TestClosedConnectionsAreForgotten checks that closed connections, of this machine and of others, are not counted.
func TestClosedConnectionsAreForgotten(t *testing.T) {
	s := &fakeListener{make(chan net.Conn)}
	l := LimitListener(s, slog.New(slog.DiscardHandler))
	in, _ := connect(t, l, s, append(many(500, "10.0.%d.1:1"), many(5, "127.0.0.1:%d")...)...)
	for _, conn := range in {
		_ = conn.Close()
	}
	for _, limit := range []*ConnectionLimit{l.(*limitedListener).others, l.(*limitedListener).local} {
		if open, peers := limit.Open(); open != 0 || peers != 0 {
			t.Errorf("%d are open, of %d peers", open, peers)
		}
	}
	close(s.coming)
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after its end: %v", err)
	}
}

// TestWritesHaveADeadline checks that a write without a deadline gets one, and that a deadline of the server is kept.
func TestWritesHaveADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeConn{}
		g := &limitedConn{Conn: s, release: func() {}}
		write := func() time.Duration {
			must.Value(io.WriteString(g, "x"))(t)
			return time.Until(s.until)
		}
		if left := write(); left != writeTimeout {
			t.Errorf("a write may take %v", left)
		}
		time.Sleep(time.Hour)
		if left := write(); left != writeTimeout {
			t.Errorf("the next may take %v", left)
		}
		for _, set := range []func(time.Time) error{g.SetWriteDeadline, g.SetDeadline} {
			must.Succeed(t, set(time.Now().Add(time.Second)))
			if left := write(); left != time.Second {
				t.Errorf("with a time of its own it may take %v", left)
			}
			must.Succeed(t, set(time.Time{}))
			if left := write(); left != writeTimeout {
				t.Errorf("after that it may take %v", left)
			}
		}
	})
}

func TestPeerOf(t *testing.T) {
	for remote, want := range map[string]string{
		"192.168.1.5:40000":             "192.168.1.5",
		"[::ffff:192.168.1.5]:1":        "192.168.1.5",
		"[2001:db8:1:2:3:4:5:6]:1":      "2001:db8:1:2::",
		"[fe80::1:2:3:4%eth0]:1":        "fe80::",
		"[::1]:1":                       "::1",
		"127.0.0.1:1":                   "127.0.0.1",
		"@":                             "invalid IP",
		"":                              "invalid IP",
		"perch.local:80":                "invalid IP",
		"[2001:db8:1:2:ffff:4:5:6]:999": "2001:db8:1:2::",
	} {
		if got := PeerOf(remote).String(); got != want {
			t.Errorf("%s is %s, want %s", remote, got, want)
		}
	}
}
