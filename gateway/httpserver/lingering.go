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

// Limits of connections that wait for the other side to close them.
const (
	lingerFor   = time.Second
	mostLinger  = 64
	mostDrained = 1 << 20 // bytes received, such as the rest of a body
)

// Lingering keeps connections open after their last answer until the other side
// has closed them, or for a second. The firmware crashes if we close first:
// its receiving task then uses what its main task is freeing. One Lingering
// serves all listeners of LimitListener whose server has its ConnContext. The zero value
// is ready for use; Close ends it.
type Lingering struct {
	within time.Duration // 0 for lingerFor
	most   int           // 0 for mostLinger

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	counts Lingered
	closed bool
	wg     sync.WaitGroup
}

// Lingered counts connections.
type Lingered struct {
	Open     int    // are kept open now
	Kept     uint64 // were kept open
	TimedOut uint64 // were closed by us after that
	Untimely uint64 // were closed at once, since too many were open
}

// Counts returns the numbers of connections.
func (l *Lingering) Counts() Lingered {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts
	c.Open = len(l.open)
	return c
}

// Close closes the open connections, and waits for that. Connections that end later are
// closed at once.
func (l *Lingering) Close() {
	l.mu.Lock()
	l.closed = true
	for conn := range l.open {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
	}
	l.mu.Unlock()
	l.wg.Wait()
}

type connKey struct{}

// ConnContext is for http.Server: it lets a request know its connection.
func (*Lingering) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// last marks the connection of a request that is its last (Connection: close).
func (l *Lingering) last(r *http.Request) {
	if c, is := r.Context().Value(connKey{}).(*limitedConn); is && r.Close {
		c.lingering.Store(l)
	}
}

// add accepts a connection that its server has closed, and closes it when the
// other side has. It reports whether there is room.
func (l *Lingering) add(c *limitedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if len(l.open) >= cmp.Or(l.most, mostLinger) {
		l.counts.Untimely++
		return false
	}
	if c.Conn.SetReadDeadline(time.Now().Add(cmp.Or(l.within, lingerFor))) != nil {
		return false // it is closed already
	}
	if l.open == nil {
		l.open = map[net.Conn]struct{}{}
	}
	l.open[c.Conn] = struct{}{}
	l.counts.Kept++
	l.wg.Go(func() {
		_, err := io.CopyN(io.Discard, c.Conn, mostDrained)
		l.mu.Lock()
		delete(l.open, c.Conn)
		if timeout, is := err.(net.Error); is && timeout.Timeout() && !l.closed {
			l.counts.TimedOut++
		}
		l.mu.Unlock()
		_ = c.closeConn()
	})
	return true
}
