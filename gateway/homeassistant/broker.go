package homeassistant

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	broker "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Bounds of the embedded broker: it is for one house.
const (
	mostClients   = 100
	mostPacket    = 256 << 10 // bytes
	mostPending   = 2048      // messages that wait for a client
	introduceIn   = 10 * time.Second
	sessionExpiry = 3600 // seconds a client's session outlives its connection
	brokerGoodbye = time.Second
)

// ErrBusy is wrapped where another program has the embedded broker's port.
var ErrBusy = errors.New("the port of the embedded MQTT broker is taken by another program")

// Broker is an MQTT broker within this process. It wants a user and a
// password, keeps nothing on disk, and lets who knows them read and write all.
type Broker struct {
	server  *broker.Server
	doorway *doorway
}

// NewBroker listens on an address, such as ":1883", and serves until Close. It
// wraps ErrBusy where the port is taken, which need not stop an appliance.
func NewBroker(listen, user, password string, log *slog.Logger) (*Broker, error) {
	if user == "" || password == "" {
		return nil, errors.New("the embedded broker needs a user and a password")
	}
	l, err := net.Listen("tcp", listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w (%s); if it is a broker of your own, name it as mqtt.broker with its user and password, else stop it or set mqtt.broker to none", ErrBusy, listen)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for MQTT: %w", err)
	}
	limits := broker.NewDefaultServerCapabilities()
	limits.MaximumClients, limits.MaximumPacketSize = mostClients, mostPacket
	limits.MaximumClientWritesPending, limits.MaximumInflight, limits.ReceiveMaximum = mostPending, 1024, 256
	limits.MaximumSessionExpiryInterval, limits.TopicAliasMaximum = sessionExpiry, 64
	b := &Broker{doorway: &doorway{Listener: l, inside: map[net.Conn]bool{}}}
	b.server = broker.New(&broker.Options{Capabilities: limits, Logger: slog.New(&brokerLog{log}), SysTopicResendInterval: 60})
	err = b.server.AddHook(&lock{user: sha256.Sum256([]byte(user)), password: sha256.Sum256([]byte(password))}, nil)
	if err == nil {
		err = b.server.AddListener(listeners.NewNet("mqtt", b.doorway))
	}
	if err == nil {
		err = b.server.Serve()
	}
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("start the embedded broker: %w", err)
	}
	return b, nil
}

// Address is where it listens, "host:port".
func (b *Broker) Address() string { return b.doorway.Addr().String() }

// Close ends every connection and waits for that.
func (b *Broker) Close() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = b.server.Close() // returns no error
	}()
	timer := time.NewTimer(brokerGoodbye)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C: // somebody does not read its goodbye, or has yet to say who it is
	}
	b.doorway.hangUp()
	<-closed
}

// lock lets in who knows the user and the password.
type lock struct {
	broker.HookBase
	user, password [sha256.Size]byte
}

// ID names the hook within the broker.
func (*lock) ID() string { return "perch" }

// Provides are the questions that the hook answers.
func (*lock) Provides(b byte) bool {
	return b == broker.OnConnectAuthenticate || b == broker.OnACLCheck
}

// OnConnectAuthenticate reports whether a client may come in.
func (l *lock) OnConnectAuthenticate(_ *broker.Client, p packets.Packet) bool {
	user, password := sha256.Sum256(p.Connect.Username), sha256.Sum256(p.Connect.Password)
	return subtle.ConstantTimeCompare(user[:], l.user[:])&subtle.ConstantTimeCompare(password[:], l.password[:]) == 1
}

// OnACLCheck lets everybody who is in read and write everything.
func (*lock) OnACLCheck(*broker.Client, string, bool) bool { return true }

// doorway bounds the connections, those that have yet to say who they are too,
// and how long that may take them.
type doorway struct {
	net.Listener
	mu     sync.Mutex
	inside map[net.Conn]bool
}

// Accept waits for the next connection there is room for.
func (d *doorway) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		v := &visitor{Conn: conn, from: d}
		d.mu.Lock()
		full := len(d.inside) >= mostClients+20
		if !full {
			d.inside[v] = true
		}
		d.mu.Unlock()
		if full {
			_ = conn.Close() // whoever it was may come again
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(introduceIn)) // the broker sets its own once it knows who it is
		return v, nil
	}
}

func (d *doorway) hangUp() {
	d.mu.Lock()
	var inside []net.Conn
	for conn := range d.inside {
		inside = append(inside, conn)
	}
	d.mu.Unlock()
	for _, conn := range inside {
		_ = conn.Close()
	}
}

// visitor is a connection that counts until it is closed.
type visitor struct {
	net.Conn
	from *doorway
}

// Close ends the connection.
func (v *visitor) Close() error {
	v.from.mu.Lock()
	delete(v.from.inside, v)
	v.from.mu.Unlock()
	return v.Conn.Close()
}

// brokerLog passes on the broker's warnings, as detail. Of what belongs to
// them only a few words are passed on: packets may hold anything, passwords too.
type brokerLog struct{ log *slog.Logger }

// Enabled reports whether a line is passed on.
func (b *brokerLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && b.log.Enabled(ctx, slog.LevelDebug)
}

// Handle passes a line on.
func (b *brokerLog) Handle(ctx context.Context, r slog.Record) error {
	var told []any
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" || a.Key == "client" || a.Key == "remote" {
			told = append(told, slog.String(a.Key, fmt.Sprintf("%.200s", a.Value.String())))
		}
		return true
	})
	b.log.DebugContext(ctx, "the embedded MQTT broker: "+r.Message, told...)
	return nil
}

// WithAttrs leaves out what the broker adds to its lines.
func (b *brokerLog) WithAttrs([]slog.Attr) slog.Handler { return b }

// WithGroup leaves groups out.
func (b *brokerLog) WithGroup(string) slog.Handler { return b }
