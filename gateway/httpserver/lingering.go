package httpserver

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of lingering connections.
const (
	lingerTimeout = time.Second
	maxLingering  = 64
	maxDrained    = 1 << 20 // bytes that are accepted from a lingering client, such as the rest of a body
)

// Lingering keeps connections open after their last response until the client has closed them, or for a
// second. The firmware crashes if the server closes first: its receiving task then uses memory that its main
// task is freeing. One Lingering can serve several listeners; each must come from LimitListener, and its
// http.Server must use the method ConnContext of the Lingering. The zero value is ready for use; Close must
// be called at the end.
type Lingering struct {
	timeout time.Duration // 0 means lingerTimeout
	maxOpen int           // 0 means maxLingering

	mu     sync.Mutex
	open   map[net.Conn]struct{} // connections that are kept open
	counts Lingered
	closed bool
	wg     sync.WaitGroup
}

// Lingered holds numbers of connections.
type Lingered struct {
	Open         int    // kept open now
	Kept         uint64 // kept open so far, in total
	TimedOut     uint64 // kept open, and then closed by the server because the client did not close in time
	ClosedAtOnce uint64 // closed at once, because too many were kept open
}

// Counts returns the current numbers.
func (l *Lingering) Counts() Lingered {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts
	c.Open = len(l.open)
	return c
}

// Close closes the open connections and waits for their goroutines. Later connections do not linger.
func (l *Lingering) Close() {
	l.mu.Lock()
	l.closed = true
	for conn := range l.open {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
	}
	l.mu.Unlock()
	l.wg.Wait()
}

// connKey is the key under which a request's context holds the connection of the request.
type connKey struct{}

// ConnContext adds the connection to the context of its requests. It is meant for http.Server.ConnContext.
func (*Lingering) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// markLast makes the connection of a request linger if the request is the last one on the connection
// (Connection: close).
func (l *Lingering) markLast(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok && r.Close {
		c.lingering.Store(l)
	}
}

// add keeps open a connection that net/http has closed, until the client closes it, the client has sent
// maxDrained bytes, or the timeout is over. It returns false if the connection must be closed at once.
func (l *Lingering) add(c *limitedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if len(l.open) >= cmp.Or(l.maxOpen, maxLingering) {
		l.counts.ClosedAtOnce++
		return false
	}
	if c.Conn.SetReadDeadline(time.Now().Add(cmp.Or(l.timeout, lingerTimeout))) != nil {
		return false // the connection is closed already
	}
	if l.open == nil {
		l.open = map[net.Conn]struct{}{}
	}
	l.open[c.Conn] = struct{}{}
	l.counts.Kept++
	l.wg.Go(func() {
		_, err := io.CopyN(io.Discard, c.Conn, maxDrained)
		l.mu.Lock()
		delete(l.open, c.Conn)
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() && !l.closed {
			l.counts.TimedOut++
		}
		l.mu.Unlock()
		_ = c.closeConn()
	})
	return true
}
