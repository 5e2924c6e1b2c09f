// Package broker is the embedded MQTT broker, for owners without another broker. The broker runs in a child process,
// because its library panics on some packets. Package homeassistant uses Process to start the child process, which calls
// RunProcess.
//
// The broker stores nothing on disk. If a client publishes a command for Perch with QoS 1, the broker confirms the command to
// the client only after Perch has confirmed it to the broker.
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

// Limits of the broker, which serves a single home.
const (
	maxClients         = 100
	maxConnsPerPeer    = 60   // connections from one address, which may run many programs
	maxPendingMessages = 2048 // messages that wait for a client
	loginTimeout       = 10 * time.Second
	sessionExpiry      = 3600                   // how long the session of a disconnected client is stored, in seconds
	goodbyeTimeout     = time.Second            // how long clients may take to read the last packet when the broker ends
	acceptRetryPause   = 100 * time.Millisecond // pause after a connection could not be accepted

	// refusalDelay is the delay before the response to a refused login. The delay is multiplied by the number of waiting
	// logins from the same address, and is at most loginTimeout. No address is locked out, because a machine may run one
	// program with the right password, such as Home Assistant, and another program with a wrong password.
	refusalDelay = time.Second
)

// Options configures a broker. All fields are required. The child process reads all fields except Log as JSON.
type Options struct {
	User         string       `json:"user"` // user of all clients, which may read and write all topics
	Password     string       `json:"password"`
	Base         string       `json:"base"`          // beginning of Perch's topics, such as "perch"
	ClientPrefix string       `json:"client_prefix"` // prefix of the client IDs of Perch's connections
	Log          *slog.Logger `json:"-"`
}

// Run runs a broker on a listener until ctx ends. It closes the listener.
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

type broker struct {
	server         *mochi.Server
	end            context.CancelFunc // makes hooks that wait return at once
	listener       *limitedListener
	authentication *authentication
	confirmations  *confirmations
}

// serve starts a broker.
func serve(l net.Listener, o Options) (*broker, error) {
	if o.User == "" || o.Password == "" {
		return nil, errors.New("the embedded broker needs a user and a password")
	}
	limits := mochi.NewDefaultServerCapabilities()
	limits.MaximumClients, limits.MaximumPacketSize = maxClients, limit.List
	limits.MaximumClientWritesPending, limits.MaximumInflight, limits.ReceiveMaximum = maxPendingMessages, 1024, 256
	limits.MaximumSessionExpiryInterval, limits.TopicAliasMaximum = sessionExpiry, 64
	b := &broker{listener: &limitedListener{Listener: l, limit: httpserver.NewConnectionLimit(maxConns, maxConnsPerPeer), open: map[*limitedConn]bool{}}}
	ctx, end := context.WithCancel(context.Background())
	b.end = end
	b.authentication = &authentication{log: o.Log, user: sha256.Sum256([]byte(o.User)), password: sha256.Sum256([]byte(o.Password)),
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

// close closes all connections and waits until their goroutines have ended.
func (b *broker) close() {
	b.end()            // refuses waiting logins at once, and leaves commands unconfirmed, so that clients publish them again later
	b.listener.close() // the server must not be closed while it takes over a connection
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = b.server.Close() // always returns nil
	}()
	timer := time.NewTimer(goodbyeTimeout)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C: // a client does not read its last packet, or has not logged in
	}
	b.listener.closeAll()
	<-closed
	b.confirmations.waits.Wait()
}

// authentication is a hook that checks the user and the password of a client. It also keeps the library from sending a
// packet that a broker must not send in the client's version of MQTT.
type authentication struct {
	mochi.HookBase
	log            *slog.Logger
	user, password [sha256.Size]byte // hashes

	over     <-chan struct{} // closed when the broker ends
	mu       sync.Mutex
	refusing map[netip.Addr]int // number of logins from an address that wait to be refused
}

// ID returns the name of the hook.
func (*authentication) ID() string { return "perch" }

// Provides reports whether the hook handles an event.
func (*authentication) Provides(b byte) bool {
	return b == mochi.OnConnectAuthenticate || b == mochi.OnACLCheck || b == mochi.OnPacketEncode
}

// OnPacketEncode makes the library write no DISCONNECT packet to a client of MQTT 3.1.1. In that version only clients may
// send this packet, and Home Assistant's client would log an error whenever the broker ends.
func (*authentication) OnPacketEncode(c *mochi.Client, pk packets.Packet) packets.Packet {
	if pk.FixedHeader.Type == packets.Disconnect && c.Properties.ProtocolVersion < 5 {
		pk.FixedHeader.Type = packets.Reserved // a packet of this type is not written
	}
	return pk
}

// wrongPassword is the message about a refused login. The parent process recognizes it.
const wrongPassword = "a client gave the embedded MQTT broker a wrong user or password"

// OnConnectAuthenticate reports whether a client may log in. It logs and delays a refusal.
func (a *authentication) OnConnectAuthenticate(c *mochi.Client, p packets.Packet) bool {
	user, password := sha256.Sum256(p.Connect.Username), sha256.Sum256(p.Connect.Password)
	if subtle.ConstantTimeCompare(user[:], a.user[:])&subtle.ConstantTimeCompare(password[:], a.password[:]) == 1 {
		return true
	}
	from := httpserver.PeerOf(c.Net.Remote)
	a.log.Warn(wrongPassword, "address", from)
	a.delayRefusal(from)
	return false
}

// delayRefusal waits for the delay before a login from an address is refused.
func (a *authentication) delayRefusal(from netip.Addr) {
	a.mu.Lock()
	a.refusing[from]++
	wait := time.NewTimer(min(time.Duration(a.refusing[from])*refusalDelay, loginTimeout))
	a.mu.Unlock()
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-a.over:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refusing[from]--; a.refusing[from] <= 0 {
		delete(a.refusing, from)
	}
}

// OnACLCheck lets every client read and write all topics.
func (*authentication) OnACLCheck(*mochi.Client, string, bool) bool { return true }

// maxConns is the maximum number of connections, including 100 for clients that have not logged in yet.
const maxConns = maxClients + 100

// limitedListener limits the number of connections, in total and from one address, and the time until a client has logged
// in.
type limitedListener struct {
	net.Listener
	limit  *httpserver.ConnectionLimit
	mu     sync.Mutex
	open   map[*limitedConn]bool
	closed bool
	unread sync.WaitGroup // counts the connections that the server has not read from yet
}

// Accept waits for the next connection within the limits. It closes connections that exceed the limits.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil && !errors.Is(err, net.ErrClosed) {
			time.Sleep(acceptRetryPause) // the error is not returned, because the library would stop accepting
			continue
		}
		if err != nil {
			return nil, err
		}
		c := l.admit(conn)
		if c == nil {
			_ = conn.Close() // the client may try again
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(loginTimeout)) // the library sets another deadline after the login
		return c, nil
	}
}

// admit registers a connection. It returns nil if there are too many connections, or after close.
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
	l.unread.Add(1)
	l.open[c] = true
	return c
}

// close stops accepting connections, and waits until the server has started to read from every accepted connection.
func (l *limitedListener) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.Listener.Close() // the library closes it again
	l.unread.Wait()
}

func (l *limitedListener) closeAll() {
	l.mu.Lock()
	conns := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// limitedConn is a connection of a limitedListener.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	release  func()    // tells the ConnectionLimit that the connection is closed
	begun    sync.Once // done once the server has started to read, or the connection is closed
	packets  reader
}

// Read implements net.Conn. It returns only packets that can be decoded. The first call shows that the server has taken
// over the connection.
func (c *limitedConn) Read(p []byte) (int, error) {
	c.begun.Do(c.listener.unread.Done)
	return c.packets.read(c.Conn, p)
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.begun.Do(c.listener.unread.Done)
	c.release()
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// brokerLog is a slog.Handler that logs the warnings and errors of the library at debug level. It drops most attributes,
// because they may contain packets with passwords.
type brokerLog struct{ log *slog.Logger }

// Enabled implements slog.Handler.
func (b *brokerLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && b.log.Enabled(ctx, slog.LevelDebug)
}

// Handle implements slog.Handler.
func (b *brokerLog) Handle(ctx context.Context, r slog.Record) error {
	var attributes []any
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" || a.Key == "client" || a.Key == "remote" {
			attributes = append(attributes, slog.String(a.Key, fmt.Sprintf("%.200s", a.Value.String())))
		}
		return true
	})
	b.log.DebugContext(ctx, "the embedded MQTT broker: "+r.Message, attributes...)
	return nil
}

// WithAttrs implements slog.Handler. It ignores the attributes.
func (b *brokerLog) WithAttrs([]slog.Attr) slog.Handler { return b }

// WithGroup implements slog.Handler. It ignores the group.
func (b *brokerLog) WithGroup(string) slog.Handler { return b }
