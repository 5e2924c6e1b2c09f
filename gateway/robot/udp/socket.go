// Package udp transports the sound of talks over MQTT: one socket for all robots, a key for each talk.
// See xiaozhi.Datagrams for what a datagram is.
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

// Limits of a talk.
const (
	mostArrived = 16 // datagrams that wait for the session: a second of sound
	mostAhead   = 8  // numbers that one may be ahead of all before: half a second of sound
	probation   = 2  // datagrams in a row that a robot sends from a new address before sound goes there
)

// Socket is where robots send the sound of their talks. It answers no one without a key.
type Socket struct {
	conn conn

	mu    sync.RWMutex
	talks map[[4]byte]*Talk

	dropped atomic.Uint64
}

// conn is the part of net.UDPConn that is used.
type conn interface {
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	SetWriteDeadline(t time.Time) error
	LocalAddr() net.Addr
	Close() error
}

// NewSocket returns a socket on a connection.
func NewSocket(c conn) *Socket { return &Socket{conn: c, talks: map[[4]byte]*Talk{}} }

// Listen opens the socket.
func Listen(address string) (*Socket, error) {
	a, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("the address of the robots' sound: %w", err)
	}
	conn, err := net.ListenUDP("udp", a)
	if err != nil {
		return nil, fmt.Errorf("listen for the robots' sound: %w", err)
	}
	return NewSocket(conn), nil
}

// Port returns the socket's port.
func (s *Socket) Port() int { return s.conn.LocalAddr().(*net.UDPAddr).Port }

// Dropped returns how many datagrams belonged to no talk, were invalid, came twice or too fast.
func (s *Socket) Dropped() uint64 { return s.dropped.Load() }

// Run reads the socket until ctx ends, and closes it.
func (s *Socket) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Close() })
	defer stop()
	defer s.conn.Close()
	buffer := make([]byte, xiaozhi.MostDatagram+1)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(buffer)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("the robots' sound: %w", err)
		case err != nil: // of one datagram, such as an ICMP answer to one of ours
			continue
		}
		if !s.receive(buffer[:n], from) {
			s.dropped.Add(1)
		}
	}
}

// Close closes a socket that was not run.
func (s *Socket) Close() { _ = s.conn.Close() }

// receive gives a datagram to its talk, and reports whether that has accepted it.
func (s *Socket) receive(datagram []byte, from netip.AddrPort) bool {
	if len(datagram) < xiaozhi.NonceSize {
		return false
	}
	s.mu.RLock()
	t := s.talks[[4]byte(datagram[4:8])]
	s.mu.RUnlock()
	return t != nil && t.receive(datagram, from)
}

// Talk is the sound of one talk. One goroutine sends, one receives.
type Talk struct {
	socket *Socket
	ssrc   [4]byte
	secret xiaozhi.UDP
	robot  netip.Addr    // address that all its datagrams come from
	packet time.Duration // of sound in each of the robot's

	arrived chan Arrived
	peer    atomic.Pointer[netip.AddrPort] // where the robot's sound goes; nil before its first datagram
	heard   chan struct{}                  // closed with that

	// The socket's goroutine uses these.
	in      *xiaozhi.Datagrams
	window  xiaozhi.ReplayWindow
	highest uint32 // number that was accepted
	ahead   uint32 // number that confirms a jump far ahead
	moved   struct {
		to    netip.AddrPort
		times int
	}

	// The sender uses these.
	out      *xiaozhi.Datagrams
	sequence uint32
	buffer   []byte
}

// Arrived is a datagram of the robot. It has its own memory.
type Arrived struct {
	sequence, timestamp uint32
	size                int
	opus                [maxOpus]byte
}

// Datagram returns the datagram. It shares memory with a.
func (a *Arrived) Datagram() xiaozhi.Datagram {
	return xiaozhi.Datagram{Sequence: a.sequence, Audio: xiaozhi.Audio{Timestamp: a.timestamp, Opus: a.opus[:a.size]}}
}

// maxOpus is the size of the largest packet of Opus (RFC 6716 section 3.4).
const maxOpus = 1275

// Open begins the sound of a talk, with a new key. The host is the address or name under which the robot
// reaches this machine, and packet how much sound each of the robot's packets holds. Datagrams from
// any address but robot are dropped, since nothing else in them shows who has sent them.
func (s *Socket) Open(host string, robot netip.Addr, packet time.Duration) *Talk {
	t := &Talk{socket: s, robot: robot.Unmap(), packet: packet, arrived: make(chan Arrived, mostArrived), heard: make(chan struct{}),
		buffer: make([]byte, 0, xiaozhi.MostDatagram)}
	t.secret = xiaozhi.UDP{Server: host, Port: s.Port()}
	_, _ = rand.Read(t.secret.Key[:]) // never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	for taken := true; taken; _, taken = s.talks[t.ssrc] {
		_, _ = rand.Read(t.ssrc[:])
	}
	t.secret.Nonce = xiaozhi.NewNonce(t.ssrc)
	t.in, t.out = xiaozhi.NewDatagrams(t.secret.Key, t.secret.Nonce, false), xiaozhi.NewDatagrams(t.secret.Key, t.secret.Nonce, true)
	s.talks[t.ssrc] = t
	return t
}

// Secret returns what the appliance's hello says of the sound.
func (t *Talk) Secret() xiaozhi.UDP { return t.secret }

// Arrived returns the channel of the robot's datagrams, each once, as they came.
func (t *Talk) Arrived() <-chan Arrived { return t.arrived }

// Audible returns a channel that is closed with the robot's first datagram: sound can be sent from
// then on.
func (t *Talk) Audible() <-chan struct{} { return t.heard }

// Close ends the talk. Nothing arrives afterwards.
func (t *Talk) Close() {
	t.socket.mu.Lock()
	defer t.socket.mu.Unlock()
	delete(t.socket.talks, t.ssrc)
}

// receive decrypts a datagram, and reports whether it is accepted.
func (t *Talk) receive(datagram []byte, from netip.AddrPort) bool {
	if from.Addr().Unmap() != t.robot {
		return false
	}
	p, err := t.in.Parse(datagram)
	if err != nil || len(p.Opus) > maxOpus {
		return false
	}
	// Nothing authenticates a datagram. Most that others have made show by what they hold that they are
	// not the robot's.
	if d, mono := duration(p.Opus); d != t.packet || !mono || !t.plausible(p.Sequence) || !t.window.Accept(p.Sequence) {
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

// plausible reports whether a number may be a robot's. If a number far ahead of all others were
// accepted, the robot's own would be old: the next number has to confirm it (RFC 3550 section A.1).
func (t *Talk) plausible(sequence uint32) bool {
	if sequence <= t.highest+mostAhead || sequence == t.ahead {
		return true
	}
	t.ahead = sequence + 1
	return false
}

// setPeer sends the sound to where the robot's latest datagrams come from. Its router may have given it
// another port.
func (t *Talk) setPeer(from netip.AddrPort) {
	switch peer := t.peer.Load(); {
	case peer == nil:
		t.peer.Store(&from)
		close(t.heard)
	case *peer == from:
		t.moved.times = 0
	case t.moved.to != from:
		t.moved.to, t.moved.times = from, 1
	default:
		if t.moved.times++; t.moved.times >= probation {
			t.peer.Store(&from)
		}
	}
}

// Send sends a packet of sound, or drops it before the robot's first datagram, which shows where its
// sound goes. Sound that does not reach the robot is lost.
func (t *Talk) Send(a xiaozhi.Audio) {
	peer := t.peer.Load()
	if peer == nil || len(a.Opus) > xiaozhi.MostDatagram-xiaozhi.NonceSize {
		return
	}
	t.sequence++
	t.buffer = t.out.Append(t.buffer[:0], xiaozhi.Datagram{Sequence: t.sequence, Audio: a})
	_ = t.socket.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = t.socket.conn.WriteToUDPAddrPort(t.buffer, *peer)
}
