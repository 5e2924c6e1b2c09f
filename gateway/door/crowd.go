package door

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// What connects to a listener is bounded, before anybody has said who he is.
const (
	mostConns = 2048
	// mostConnsOfOne is for a machine with a screen of skins, or one behind
	// which there are others, as with a container's network.
	mostConnsOfOne = 256
	// mostConnsOfOurs is for programs of this machine. One of them may be a
	// proxy, behind which everybody is.
	mostConnsOfOurs = 1536
)

// takeWithin is how long the other side may take to read one write where
// nobody has said otherwise: streams and WebSockets set times of their own.
const takeWithin = time.Minute

// complainEvery is how often it is logged that connections are turned away.
const complainEvery = time.Minute

// Crowd returns a listener that turns connections away at once where too many
// are open, in all or from one address (see Visitor). What connects may not
// hold up a write for more than a minute.
func Crowd(l net.Listener, log *slog.Logger) net.Listener {
	return &crowd{Listener: l, log: log, inside: map[netip.Addr]int{}}
}

type crowd struct {
	net.Listener
	log *slog.Logger

	mu         sync.Mutex
	inside     map[netip.Addr]int
	all        int
	turnedAway int // since it was last logged
	complained time.Time
}

// Accept waits for the next connection there is room for.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := Visitor(conn.RemoteAddr().String())
		if why := c.enter(from); why != "" {
			_ = conn.Close() // whoever it was may come again
			c.complain(from, why)
			continue
		}
		return &guest{Conn: conn, leave: sync.OnceFunc(func() { c.left(from) })}, nil
	}
}

// enter takes a place, or says why there is none.
func (c *crowd) enter(from netip.Addr) (why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := mostConnsOfOne
	if from.IsLoopback() || !from.IsValid() {
		most = mostConnsOfOurs
	}
	switch {
	case c.all >= mostConns:
		return fmt.Sprintf("%d are open", mostConns)
	case c.inside[from] >= most:
		return fmt.Sprintf("%d are open from there", most)
	}
	c.all++
	c.inside[from]++
	return ""
}

func (c *crowd) left(from netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.inside[from]--; c.inside[from] <= 0 {
		delete(c.inside, from)
	}
}

// complain logs what is turned away, once in a while.
func (c *crowd) complain(from netip.Addr, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turnedAway++
	if now := time.Now(); now.Sub(c.complained) >= complainEvery {
		c.log.Warn("connections are turned away", "listener", c.Addr().String(), "count", c.turnedAway, "latest", from, "why", why)
		c.turnedAway, c.complained = 0, now
	}
}

// guest is a connection that counts until it is closed.
type guest struct {
	net.Conn
	leave func()
	timed atomic.Bool // somebody has set a time for writing
}

// Close ends the connection.
func (g *guest) Close() error {
	g.leave()
	return g.Conn.Close()
}

// CloseWrite lets the other side read to the end what it was sent; a server
// looks for it.
func (g *guest) CloseWrite() error {
	if c, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// Write gives the other side its time where nobody else has.
func (g *guest) Write(p []byte) (int, error) {
	if !g.timed.Load() {
		if err := g.Conn.SetWriteDeadline(time.Now().Add(takeWithin)); err != nil {
			return 0, err
		}
	}
	return g.Conn.Write(p)
}

// SetWriteDeadline takes the time for writing out of our hands, or gives it
// back.
func (g *guest) SetWriteDeadline(t time.Time) error {
	g.timed.Store(!t.IsZero())
	return g.Conn.SetWriteDeadline(t)
}

// SetDeadline does the same.
func (g *guest) SetDeadline(t time.Time) error {
	g.timed.Store(!t.IsZero())
	return g.Conn.SetDeadline(t)
}
