package httpserver

import (
	"errors"
	"net/netip"
	"sync"
)

// Errors of a connection limit.
var (
	// ErrTooMany is returned by Acquire if maxTotal connections are open.
	ErrTooMany = errors.New("too many connections are open")
	// ErrTooManyOfPeer is returned by Acquire if maxOfPeer connections from the peer are open.
	ErrTooManyOfPeer = errors.New("too many connections from this address are open")
)

// ConnectionLimit bounds the number of open connections, in total and from each peer (see PeerOf).
type ConnectionLimit struct {
	maxTotal, maxOfPeer int

	mu     sync.Mutex
	open   int                // open connections
	byPeer map[netip.Addr]int // open connections of each peer
}

// NewConnectionLimit returns a limit of maxTotal connections, and of maxOfPeer connections from each peer.
func NewConnectionLimit(maxTotal, maxOfPeer int) *ConnectionLimit {
	return &ConnectionLimit{maxTotal: maxTotal, maxOfPeer: maxOfPeer, byPeer: map[netip.Addr]int{}}
}

// Acquire counts a connection until release is called; calling release again does nothing. If Acquire
// returns ErrTooMany or ErrTooManyOfPeer, the caller must not serve the connection.
func (l *ConnectionLimit) Acquire(peer netip.Addr) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.open >= l.maxTotal:
		return nil, ErrTooMany
	case l.byPeer[peer] >= l.maxOfPeer:
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

// Open returns how many connections are open, and from how many peers.
func (l *ConnectionLimit) Open() (connections, peers int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, len(l.byPeer)
}
