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
	mostDrained = 1 << 20 // bytes that come meanwhile, such as what is left of a body
)

// Lingering keeps connections open after their last answer until the other side
// has closed them, or for a second. The firmware crashes where we close first:
// its receiving task then uses what its main task is taking apart. One Lingering
// serves every listener of LimitListener with a server that has its ConnContext. The zero value
// is ready for use; Close ends it.
type Lingering struct {
	within time.Duration // lingerFor where it is 0
	most   int           // mostLinger where it is 0

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	counts Lingered
	closed bool
	wg     sync.WaitGroup
}

// Lingered counts connections.
type Lingered struct {
	Open     int    // are kept open
	Kept     uint64 // were, ever
	TimedOut uint64 // of those, were closed by us
	Untimely uint64 // were closed at once, for too many were open
}

// Counts is how many connections were kept open.
func (l *Lingering) Counts() Lingered {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts
	c.Open = len(l.open)
	return c
}

// Close closes what is kept open, and waits for it. What ends later is closed at
// once.
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

// ConnContext is a server's, so that a request knows its connection.
func (*Lingering) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// last notes that a request is the last of its connection (Connection: close).
func (l *Lingering) last(r *http.Request) {
	if c, is := r.Context().Value(connKey{}).(*limitedConn); is && r.Close {
		c.lingering.Store(l)
	}
}

// add takes a connection after its server has closed it, and closes it when the
// other side has. It reports whether there is room.
func (l *Lingering) add(c *limitedConn) bool {
	most, within := l.most, l.within
	most = cmp.Or(most, mostLinger)
	within = cmp.Or(within, lingerFor)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if len(l.open) >= most {
		l.counts.Untimely++
		return false
	}
	if c.Conn.SetReadDeadline(time.Now().Add(within)) != nil {
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
