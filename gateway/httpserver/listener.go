package httpserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a listener's connections, before any has sent a key.
const (
	mostConns = 2048
	// mostConnsOfPeer allows for a machine with a screen of skins, or a network behind
	// one address, as of containers.
	mostConnsOfPeer = 256
	// mostLocalConns is for programs of this machine, counted apart from the
	// others: if other machines reach their limit, the watchdog can still
	// connect. One of the programs may be a proxy for all clients.
	mostLocalConns = 1024
)

// writeWithin bounds a write if no deadline was set: streams and WebSockets set their own.
const writeWithin = time.Minute

// logEvery is the interval for logging refused connections.
const logEvery = time.Minute

// LimitListener returns a listener that closes connections at once if too
// many are open, in all or from one peer (see PeerOf). A write to a connection
// takes at most a minute.
func LimitListener(l net.Listener, log *slog.Logger) net.Listener {
	return &limitedListener{Listener: l, log: log, others: NewConnectionLimit(mostConns, mostConnsOfPeer),
		local: NewConnectionLimit(mostLocalConns, mostLocalConns)}
}

type limitedListener struct {
	net.Listener
	log    *slog.Logger
	others *ConnectionLimit // of other machines
	local  *ConnectionLimit // of this machine

	mu      sync.Mutex
	refused int // since it was last logged
	logged  time.Time
}

// Accept waits for the next connection within the limits.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, limit := PeerOf(conn.RemoteAddr().String()), l.others
		if isLocal(conn) {
			limit = l.local
		}
		release, err := limit.Acquire(peer)
		if err != nil {
			_ = conn.Close() // its client may try again
			l.refuse(peer, limit == l.local, err)
			continue
		}
		return &limitedConn{Conn: conn, release: release}, nil
	}
}

// isLocal reports whether a connection comes from this machine: from loopback,
// from the address it goes to, or over a unix socket.
func isLocal(conn net.Conn) bool {
	from := addressOf(conn.RemoteAddr().String())
	return !from.IsValid() || from.IsLoopback() || from == addressOf(conn.LocalAddr().String())
}

// refuse logs connections that were closed, once in a while.
func (l *limitedListener) refuse(peer netip.Addr, local bool, err error) {
	why := fmt.Sprintf("%d are open", mostConns)
	switch {
	case local:
		why = fmt.Sprintf("%d of this machine are open", mostLocalConns)
	case errors.Is(err, ErrTooManyOfPeer):
		why = fmt.Sprintf("%d are open from there", mostConnsOfPeer)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused++
	if now := time.Now(); now.Sub(l.logged) >= logEvery {
		l.log.Warn("connections are refused: too many are open", "listener", l.Addr().String(), "count", l.refused, "latest", peer, "why", why)
		l.refused, l.logged = 0, now
	}
}

// limitedConn is a connection that counts until it is closed.
type limitedConn struct {
	net.Conn
	release func()
	timed   atomic.Bool // a deadline for writing was set

	lingering atomic.Pointer[Lingering] // lets the other side close it; may be nil
}

// Close closes the connection, or waits until the other side does (see Lingering).
func (c *limitedConn) Close() error {
	if l := c.lingering.Swap(nil); l != nil && l.add(c) {
		return nil
	}
	return c.closeConn()
}

func (c *limitedConn) closeConn() error {
	c.release()
	return c.Conn.Close()
}

// CloseWrite lets the other side read to the end; net/http calls it.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Write sets a deadline unless one was set.
func (c *limitedConn) Write(p []byte) (int, error) {
	if !c.timed.Load() {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline replaces the deadline of Write; zero restores it.
func (c *limitedConn) SetWriteDeadline(t time.Time) error {
	c.timed.Store(!t.IsZero())
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline does the same.
func (c *limitedConn) SetDeadline(t time.Time) error {
	c.timed.Store(!t.IsZero())
	return c.Conn.SetDeadline(t)
}
