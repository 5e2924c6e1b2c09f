// Package broker is an MQTT broker for homes without one. Its library panics on some
// packets, so it runs in a separate process: Run is the body of a child process, which
// gets a listener and ends with its parent.
//
// It stores nothing on disk. A command that is published to Perch with QoS 1 is confirmed
// to its publisher only after Perch has confirmed it: a publisher can rely on that.
package broker

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"perch/gateway/httpserver"
	"perch/limit"
)

// Limits of the broker: it is for one home.
const (
	mostClients   = 100
	mostOfPeer    = 60   // clients from one address, which may have many programs
	mostPending   = 2048 // messages that wait for a client
	loginWithin   = 10 * time.Second
	sessionExpiry = 3600 // seconds a client's session outlives its connection
	goodbyeIn     = time.Second
	acceptAgain   = 100 * time.Millisecond // after a connection that could not be accepted

	// refuseAfter delays the answer to a refused login, and again for each login of the same
	// address that waits. No address is locked out: on the machine of Home Assistant,
	// which knows the password, another program may not know it.
	refuseAfter = time.Second
)

// Options are the settings of a broker. All are required. The child reads them as JSON.
type Options struct {
	User         string       `json:"user"` // of every client; all may read and write all topics
	Password     string       `json:"password"`
	Base         string       `json:"base"`          // begins Perch's topics
	ClientPrefix string       `json:"client_prefix"` // begins the client ids of Perch, whose clients alone confirm commands
	Log          *slog.Logger `json:"-"`
}

// Run serves on a listener until ctx ends. It closes the listener.
func Run(ctx context.Context, l net.Listener, o Options) error {
	b, err := serve(l, o)
	if err != nil {
		_ = l.Close()
		return err
	}
	<-ctx.Done()
	b.close()
	return nil
}

// broker is a broker that serves.
type broker struct {
	server         *mochi.Server
	end            context.CancelFunc // of the hooks
	listener       *limitedListener
	authentication *authentication
	confirmations  *confirmations
}

func serve(l net.Listener, o Options) (*broker, error) {
	if o.User == "" || o.Password == "" {
		return nil, errors.New("the embedded broker needs a user and a password")
	}
	limits := mochi.NewDefaultServerCapabilities()
	limits.MaximumClients, limits.MaximumPacketSize = mostClients, limit.List
	limits.MaximumClientWritesPending, limits.MaximumInflight, limits.ReceiveMaximum = mostPending, 1024, 256
	limits.MaximumSessionExpiryInterval, limits.TopicAliasMaximum = sessionExpiry, 64
	b := &broker{listener: &limitedListener{Listener: l, limit: httpserver.NewConnectionLimit(mostConns, mostOfPeer), open: map[*limitedConn]bool{}}}
	ctx, end := context.WithCancel(context.Background())
	b.end = end
	b.authentication = &authentication{user: sha256.Sum256([]byte(o.User)), password: sha256.Sum256([]byte(o.Password)),
		over: ctx.Done(), refusing: map[netip.Addr]int{}}
	b.server = mochi.New(&mochi.Options{Capabilities: limits, Logger: slog.New(&brokerLog{o.Log}), SysTopicResendInterval: 60})
	b.confirmations = newConfirmations(b.server, o.Base, o.ClientPrefix, ctx.Done())
	err := errors.Join(b.server.AddHook(b.authentication, nil), b.server.AddHook(b.confirmations, nil),
		b.server.AddHook(&packing{prefix: o.ClientPrefix}, nil))
	if err == nil {
		err = b.server.AddListener(listeners.NewNet("mqtt", b.listener))
	}
	if err == nil {
		err = b.server.Serve()
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("start the embedded broker: %w", err)
	}
	return b, nil
}

// close ends every connection and waits for that.
func (b *broker) close() {
	b.end()            // clients that wait are refused now; unconfirmed commands are published again later
	b.listener.close() // the library must not be closed while it takes over a connection
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = b.server.Close() // returns no error
	}()
	timer := time.NewTimer(goodbyeIn)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C: // a client does not read its goodbye, or has not logged in
	}
	b.listener.closeAll()
	<-closed
	b.confirmations.waits.Wait()
}

// authentication checks the user and the password.
type authentication struct {
	mochi.HookBase
	user, password [sha256.Size]byte

	over     <-chan struct{} // closed with the broker
	mu       sync.Mutex
	refusing map[netip.Addr]int // logins that wait to be refused
}

// ID is the hook's name within the broker.
func (*authentication) ID() string { return "perch" }

// Provides reports which events the hook handles.
func (*authentication) Provides(b byte) bool {
	return b == mochi.OnConnectAuthenticate || b == mochi.OnACLCheck
}

// OnConnectAuthenticate reports whether a client may log in.
func (l *authentication) OnConnectAuthenticate(c *mochi.Client, p packets.Packet) bool {
	user, password := sha256.Sum256(p.Connect.Username), sha256.Sum256(p.Connect.Password)
	if subtle.ConstantTimeCompare(user[:], l.user[:])&subtle.ConstantTimeCompare(password[:], l.password[:]) == 1 {
		return true
	}
	l.delay(httpserver.PeerOf(c.Net.Remote))
	return false
}

// delay waits before a client is refused.
func (l *authentication) delay(from netip.Addr) {
	l.mu.Lock()
	l.refusing[from]++
	wait := time.NewTimer(min(time.Duration(l.refusing[from])*refuseAfter, loginWithin))
	l.mu.Unlock()
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-l.over:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusing[from]--; l.refusing[from] <= 0 {
		delete(l.refusing, from)
	}
}

// OnACLCheck lets every client read and write everything.
func (*authentication) OnACLCheck(*mochi.Client, string, bool) bool { return true }

// mostConns bounds the connections, including clients that have not logged in.
const mostConns = mostClients + 100

// limitedListener bounds the number of connections, in all and of one address, and the time
// to log in.
type limitedListener struct {
	net.Listener
	limit  *httpserver.ConnectionLimit
	mu     sync.Mutex
	open   map[*limitedConn]bool
	closed bool
	coming sync.WaitGroup // connections that were not read yet
}

// Accept waits for the next connection within the limits.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil && !errors.Is(err, net.ErrClosed) {
			time.Sleep(acceptAgain) // after an error the library stops accepting
			continue
		}
		if err != nil {
			return nil, err
		}
		c := l.admit(conn)
		if c == nil {
			_ = conn.Close() // its client may try again
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(loginWithin)) // the broker sets its own after the login
		return c, nil
	}
}

// admit counts a connection until it is closed. It returns nil if there are
// too many.
func (l *limitedListener) admit(conn net.Conn) *limitedConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	release, err := l.limit.Acquire(httpserver.PeerOf(conn.RemoteAddr().String()))
	if err != nil {
		return nil
	}
	c := &limitedConn{Conn: conn, listener: l, release: release}
	l.coming.Add(1)
	l.open[c] = true
	return c
}

// close accepts no more connections, and waits until the broker has begun to read from all.
func (l *limitedListener) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.Listener.Close() // the broker closes it once more
	l.coming.Wait()
}

// closeAll closes every connection.
func (l *limitedListener) closeAll() {
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	for _, conn := range all {
		_ = conn.Close()
	}
}

// limitedConn is a connection that counts until it is closed.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	release  func()
	begun    sync.Once
	packets  reader
}

// Read reads whole packets that can be decoded. The first read shows that the broker has
// taken over the connection.
func (c *limitedConn) Read(p []byte) (int, error) {
	c.begun.Do(c.listener.coming.Done)
	return c.packets.read(c.Conn, p)
}

// Close closes the connection.
func (c *limitedConn) Close() error {
	c.begun.Do(c.listener.coming.Done)
	c.release()
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// brokerLog logs the library's warnings at debug level, with only a few of their
// attributes: packets may hold anything, passwords too.
type brokerLog struct{ log *slog.Logger }

// Enabled implements slog.Handler.
func (b *brokerLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && b.log.Enabled(ctx, slog.LevelDebug)
}

// Handle implements slog.Handler.
func (b *brokerLog) Handle(ctx context.Context, r slog.Record) error {
	var passed []any
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" || a.Key == "client" || a.Key == "remote" {
			passed = append(passed, slog.String(a.Key, fmt.Sprintf("%.200s", a.Value.String())))
		}
		return true
	})
	b.log.DebugContext(ctx, "the embedded MQTT broker: "+r.Message, passed...)
	return nil
}

// WithAttrs ignores the library's attributes.
func (b *brokerLog) WithAttrs([]slog.Attr) slog.Handler { return b }

// WithGroup ignores groups.
func (b *brokerLog) WithGroup(string) slog.Handler { return b }
