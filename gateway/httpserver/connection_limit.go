package httpserver

import (
	"errors"
	"net/netip"
	"sync"
)

// Errors of a connection limit.
var (
	// ErrTooMany is returned by Acquire if the limit is reached.
	ErrTooMany = errors.New("too many connections are open")
	// ErrTooManyOfPeer is returned by Acquire if the limit of one peer is reached.
	ErrTooManyOfPeer = errors.New("too many connections of this address are open")
)

// ConnectionLimit bounds the number of open connections, in all and
// from one peer (see PeerOf).
type ConnectionLimit struct {
	most, mostOfPeer int

	mu     sync.Mutex
	open   int
	byPeer map[netip.Addr]int
}

// NewConnectionLimit returns a limit of so many connections in all, and so many
// of them from one peer.
func NewConnectionLimit(most, mostOfPeer int) *ConnectionLimit {
	return &ConnectionLimit{most: most, mostOfPeer: mostOfPeer, byPeer: map[netip.Addr]int{}}
}

// Acquire counts a connection until release is called, which may be called again.
// It returns ErrTooMany or ErrTooManyOfPeer if the connection must be closed.
func (l *ConnectionLimit) Acquire(peer netip.Addr) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.open >= l.most:
		return nil, ErrTooMany
	case l.byPeer[peer] >= l.mostOfPeer:
		return nil, ErrTooManyOfPeer
	}
	l.open++
	l.byPeer[peer]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
		if l.byPeer[peer]--; l.byPeer[peer] == 0 {
			delete(l.byPeer, peer)
		}
	}), nil
}

// Open returns the number of open connections, and of their peers.
func (l *ConnectionLimit) Open() (connections, peers int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, len(l.byPeer)
}
