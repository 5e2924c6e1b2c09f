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
	// mostConnsOfOurs is for programs of this machine, besides the others: who
	// fills the places does not keep out the watchdog. One of them may be a
	// proxy, behind which everybody is.
	mostConnsOfOurs = 1024
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
	inside     map[netip.Addr]int // of other machines
	all        int                // of them
	ours       int                // of this machine
	turnedAway int                // since it was last logged
	complained time.Time
}

// Accept waits for the next connection there is room for.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, ours := Visitor(conn.RemoteAddr().String()), isOurs(conn)
		if why := c.enter(from, ours); why != "" {
			_ = conn.Close() // whoever it was may come again
			c.complain(from, why)
			continue
		}
		return &guest{Conn: conn, leave: sync.OnceFunc(func() { c.left(from, ours) })}, nil
	}
}

// isOurs reports whether a connection comes from this machine: from loopback,
// from the address it goes to, or over a unix socket.
func isOurs(conn net.Conn) bool {
	from := addressOf(conn.RemoteAddr().String())
	return !from.IsValid() || from.IsLoopback() || from == addressOf(conn.LocalAddr().String())
}

// enter takes a place, or says why there is none.
func (c *crowd) enter(from netip.Addr, ours bool) (why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ours && c.ours >= mostConnsOfOurs:
		return fmt.Sprintf("%d of this machine are open", mostConnsOfOurs)
	case ours:
		c.ours++
		return ""
	case c.all >= mostConns:
		return fmt.Sprintf("%d are open", mostConns)
	case c.inside[from] >= mostConnsOfOne:
		return fmt.Sprintf("%d are open from there", mostConnsOfOne)
	}
	c.all++
	c.inside[from]++
	return ""
}

func (c *crowd) left(from netip.Addr, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ours {
		c.ours--
		return
	}
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

	lingering atomic.Pointer[Lingering] // keeps it open until the other side closes it; nil where we do
}

// Close ends the connection, or has the other side do so.
func (g *guest) Close() error {
	if l := g.lingering.Swap(nil); l != nil && l.keep(g) {
		return nil
	}
	return g.end()
}

func (g *guest) end() error {
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
