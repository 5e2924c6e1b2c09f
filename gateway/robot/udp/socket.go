// Package udp transports the sound of robots that are connected by MQTT: one socket serves all robots, and
// each session has a stream with its own key. See xiaozhi.Datagrams for the format of a datagram.
package udp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"perch/device/xiaozhi"
)

// Limits of a stream.
const (
	maxArrived = 16 // datagrams that may wait for the session: a second of sound
	maxAhead   = 8  // how far a sequence number may be ahead of the highest number accepted so far: half a second of sound
	minMoved   = 2  // datagrams in a row from a new address after which sound is sent to the new address
)

// Socket is the UDP socket for the sound of the robots' sessions, in both directions. It sends only to
// addresses that have sent it a datagram of a stream.
type Socket struct {
	conn conn

	mu      sync.RWMutex
	streams map[[4]byte]*Stream // open streams, by SSRC (see Stream.ssrc)

	dropped atomic.Uint64 // see Dropped
}

// conn is the part of net.UDPConn that a Socket uses.
type conn interface {
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	SetWriteDeadline(t time.Time) error
	LocalAddr() net.Addr
	Close() error
}

// NewSocket returns a socket that uses a connection.
func NewSocket(c conn) *Socket { return &Socket{conn: c, streams: map[[4]byte]*Stream{}} }

// Listen opens a socket at an address "host:port". An empty host means all addresses of this machine.
func Listen(address string) (*Socket, error) {
	a, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("resolve the address for the robots' sound: %w", err)
	}
	conn, err := net.ListenUDP("udp", a)
	if err != nil {
		return nil, fmt.Errorf("listen for the robots' sound: %w", err)
	}
	return NewSocket(conn), nil
}

// Port returns the socket's port.
func (s *Socket) Port() int { return s.conn.LocalAddr().(*net.UDPAddr).Port }

// Dropped returns how many received datagrams were dropped, because they belonged to no stream, were invalid,
// arrived twice, or arrived faster than their session received them.
func (s *Socket) Dropped() uint64 { return s.dropped.Load() }

// Run reads the socket until ctx ends, and then closes the socket. It returns an error only if the socket was
// closed before.
func (s *Socket) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Close() })
	defer stop()
	defer s.conn.Close()
	buffer := make([]byte, xiaozhi.MaxDatagram+1)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(buffer)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("receive the robots' sound: %w", err)
		case err != nil: // concerns one datagram only, such as an ICMP error for a sent datagram
			continue
		}
		if !s.receive(buffer[:n], from) {
			s.dropped.Add(1)
		}
	}
}

// Close closes a socket whose Run was not called.
func (s *Socket) Close() { _ = s.conn.Close() }

// receive passes a datagram to its stream, and reports whether the stream has accepted the datagram.
func (s *Socket) receive(datagram []byte, from netip.AddrPort) bool {
	if len(datagram) < xiaozhi.NonceSize {
		return false
	}
	s.mu.RLock()
	t := s.streams[[4]byte(datagram[4:8])]
	s.mu.RUnlock()
	return t != nil && t.receive(datagram, from)
}

// Stream is the sound of one session, in both directions. One goroutine may send while another receives.
type Stream struct {
	socket *Socket
	ssrc   [4]byte // identifies the stream in each datagram
	secret xiaozhi.UDP
	robot  netip.Addr    // robot's address; datagrams from other addresses are dropped
	packet time.Duration // duration of the sound in each of the robot's packets

	arrived chan Arrived
	peer    atomic.Pointer[netip.AddrPort] // where to send sound; nil before the robot's first datagram
	audible chan struct{}                  // closed once peer is set

	// Only the goroutine of Socket.Run uses the following fields.
	in      *xiaozhi.Datagrams
	window  xiaozhi.ReplayWindow
	highest uint32 // highest sequence number accepted so far
	jumped  uint32 // the only sequence number far ahead that is accepted; see isPlausible
	moved   struct {
		to    netip.AddrPort // new address of the robot, not confirmed yet
		times int            // datagrams received in a row from the address to
	}

	// Only the sending goroutine uses the following fields.
	out      *xiaozhi.Datagrams
	sequence uint32 // sequence number of the latest datagram sent
	buffer   []byte
}

// Arrived is a decrypted datagram from the robot. It holds its own copy of the sound.
type Arrived struct {
	sequence, timestamp uint32
	size                int
	opus                [maxOpus]byte
}

// Datagram returns the datagram, which shares memory with a.
func (a *Arrived) Datagram() xiaozhi.Datagram {
	return xiaozhi.Datagram{Sequence: a.sequence, Audio: xiaozhi.Audio{Timestamp: a.timestamp, Opus: a.opus[:a.size]}}
}

// maxOpus is the size of the largest Opus packet, in bytes (RFC 6716 section 3.4).
const maxOpus = 1275

// Open opens a stream with a new key. host is the address or name under which the robot reaches this
// machine. packet is the duration of the sound in each of the robot's packets. Datagrams from other
// addresses than robot are dropped, because the protocol does not authenticate datagrams.
func (s *Socket) Open(host string, robot netip.Addr, packet time.Duration) *Stream {
	t := &Stream{socket: s, robot: robot.Unmap(), packet: packet, arrived: make(chan Arrived, maxArrived), audible: make(chan struct{}),
		buffer: make([]byte, 0, xiaozhi.MaxDatagram)}
	t.secret = xiaozhi.UDP{Server: host, Port: s.Port()}
	_, _ = rand.Read(t.secret.Key[:]) // never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	for taken := true; taken; _, taken = s.streams[t.ssrc] {
		_, _ = rand.Read(t.ssrc[:])
	}
	t.secret.Nonce = xiaozhi.NewNonce(t.ssrc)
	t.in, t.out = xiaozhi.NewDatagrams(t.secret.Key, t.secret.Nonce, false), xiaozhi.NewDatagrams(t.secret.Key, t.secret.Nonce, true)
	s.streams[t.ssrc] = t
	return t
}

// Secret returns the stream's address and encryption key, for the appliance's hello.
func (t *Stream) Secret() xiaozhi.UDP { return t.secret }

// Arrived returns a channel of the robot's datagrams, without duplicates, in the order of their arrival.
func (t *Stream) Arrived() <-chan Arrived { return t.arrived }

// Audible returns a channel that is closed when the first datagram of the robot is accepted. Until then, Send
// does not know where to send sound.
func (t *Stream) Audible() <-chan struct{} { return t.audible }

// Close closes the stream. Datagrams that are received afterwards are dropped.
func (t *Stream) Close() {
	t.socket.mu.Lock()
	defer t.socket.mu.Unlock()
	delete(t.socket.streams, t.ssrc)
}

// receive decrypts a datagram and passes it on to Arrived. It returns false if it drops the datagram.
func (t *Stream) receive(datagram []byte, from netip.AddrPort) bool {
	if from.Addr().Unmap() != t.robot {
		return false
	}
	p, err := t.in.Parse(datagram)
	if err != nil || len(p.Opus) > maxOpus {
		return false
	}
	// Datagrams are not authenticated. Most forged datagrams decrypt to something unlike a robot's packets.
	if d, mono := duration(p.Opus); d != t.packet || !mono || !t.isPlausible(p.Sequence) || !t.window.Accept(p.Sequence) {
		return false
	}
	newest := p.Sequence > t.highest
	t.highest = max(t.highest, p.Sequence)
	if newest {
		t.setPeer(from)
	}
	a := Arrived{sequence: p.Sequence, timestamp: p.Timestamp}
	a.size = copy(a.opus[:], p.Opus)
	select {
	case t.arrived <- a:
		return true
	default:
		return false
	}
}

// isPlausible reports whether a sequence number may be the robot's. It rejects a number that is more than
// maxAhead ahead, unless the number follows the previous rejected one (as in RFC 3550 section A.1). Otherwise
// one forged datagram could make all datagrams of the robot look old.
func (t *Stream) isPlausible(sequence uint32) bool {
	if sequence <= t.highest+maxAhead || sequence == t.jumped {
		return true
	}
	t.jumped = sequence + 1
	return false
}

// setPeer updates the address that sound is sent to, given the source of the robot's newest datagram. Only
// the port can change, when a router assigns another one.
func (t *Stream) setPeer(from netip.AddrPort) {
	switch peer := t.peer.Load(); {
	case peer == nil:
		t.peer.Store(&from)
		close(t.audible)
	case *peer == from:
		t.moved.times = 0
	case t.moved.to != from:
		t.moved.to, t.moved.times = from, 1
	default:
		if t.moved.times++; t.moved.times >= minMoved {
			t.peer.Store(&from)
		}
	}
}

// Send sends a packet of sound. It drops the packet if the robot's address is not known yet (see Audible) or
// if the packet is too large for a datagram. It ignores errors, because datagrams may get lost anyway.
func (t *Stream) Send(a xiaozhi.Audio) {
	peer := t.peer.Load()
	if peer == nil || len(a.Opus) > xiaozhi.MaxDatagram-xiaozhi.NonceSize {
		return
	}
	t.sequence++
	t.buffer = t.out.Append(t.buffer[:0], xiaozhi.Datagram{Sequence: t.sequence, Audio: a})
	_ = t.socket.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = t.socket.conn.WriteToUDPAddrPort(t.buffer, *peer)
}
