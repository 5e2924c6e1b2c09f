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

// Limits of a listener's open connections.
const (
	maxConns = 2048 // from other machines
	// maxConnsOfPeer is enough for a screen full of avatars, or for many clients behind one address, such as
	// containers.
	maxConnsOfPeer = 256
	// maxLocalConns is for programs on this machine. They are counted separately, so that the watchdog can
	// connect even if other machines have reached their limit. The limit is high, because one of the programs
	// may be a proxy for all clients.
	maxLocalConns = 1024
)

// writeTimeout bounds a write to a connection without a deadline. Streams and WebSockets set other deadlines.
const writeTimeout = time.Minute

// logEvery is how often refused connections are logged.
const logEvery = time.Minute

// LimitListener returns a listener that closes a new connection at once while too many are open: from other machines
// in total, from the same peer (see PeerOf), or from this machine. It also limits writes without a deadline to a minute.
func LimitListener(l net.Listener, log *slog.Logger) net.Listener {
	return &limitedListener{Listener: l, log: log, others: NewConnectionLimit(maxConns, maxConnsOfPeer),
		local: NewConnectionLimit(maxLocalConns, maxLocalConns)}
}

// limitedListener is the listener of LimitListener.
type limitedListener struct {
	net.Listener
	log    *slog.Logger
	others *ConnectionLimit // for connections from other machines
	local  *ConnectionLimit // for connections from this machine

	mu      sync.Mutex
	refused int       // connections refused since logged
	logged  time.Time // when refused connections were last logged
}

// Accept implements net.Listener.
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
			_ = conn.Close() // the client may try again
			l.logRefused(peer, limit == l.local, err)
			continue
		}
		return &limitedConn{Conn: conn, release: release}, nil
	}
}

// isLocal reports whether a connection comes from this machine: from a loopback address, from the address of
// its local end, or over a unix socket.
func isLocal(conn net.Conn) bool {
	from := addressOf(conn.RemoteAddr().String())
	return !from.IsValid() || from.IsLoopback() || from == addressOf(conn.LocalAddr().String())
}

// logRefused logs that connections are refused, at most once a minute.
func (l *limitedListener) logRefused(peer netip.Addr, local bool, err error) {
	why := fmt.Sprintf("%d are open", maxConns)
	switch {
	case local:
		why = fmt.Sprintf("%d from this machine are open", maxLocalConns)
	case errors.Is(err, ErrTooManyOfPeer):
		why = fmt.Sprintf("%d from the same address are open", maxConnsOfPeer)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused++
	if now := time.Now(); now.Sub(l.logged) >= logEvery {
		l.log.Warn("connections are refused: too many are open", "listener", l.Addr().String(), "count", l.refused, "latest", peer, "why", why)
		l.refused, l.logged = 0, now
	}
}

// limitedConn is a connection that is counted until it is closed.
type limitedConn struct {
	net.Conn
	release     func()
	hasDeadline atomic.Bool // the user of the connection has set a write deadline

	lingering atomic.Pointer[Lingering] // keeps the connection open after Close; may be nil
}

// Close closes the connection, or keeps it open until the client closes it (see Lingering).
func (c *limitedConn) Close() error {
	if l := c.lingering.Swap(nil); l != nil && l.add(c) {
		return nil
	}
	return c.closeConn()
}

// closeConn closes the connection at once.
func (c *limitedConn) closeConn() error {
	c.release()
	return c.Conn.Close()
}

// CloseWrite closes the writing side, if the connection has one. net/http calls it, so that the client can
// read the response to its end.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Write implements net.Conn. Without a write deadline it limits the write to writeTimeout.
func (c *limitedConn) Write(p []byte) (int, error) {
	if !c.hasDeadline.Load() {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline implements net.Conn. The zero time restores the limit of Write.
func (c *limitedConn) SetWriteDeadline(t time.Time) error {
	c.hasDeadline.Store(!t.IsZero())
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn. The zero time restores the limit of Write.
func (c *limitedConn) SetDeadline(t time.Time) error {
	c.hasDeadline.Store(!t.IsZero())
	return c.Conn.SetDeadline(t)
}
