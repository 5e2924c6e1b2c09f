package httpserver

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxPeers is how many peers may have a limiter at a time.
const maxPeers = 1000

// peerLimiters has a rate limiter for each of the latest peers. When there are too many, the network with the
// most peers loses the limiter that was used least recently, so a client with many addresses displaces only
// limiters of the same network.
type peerLimiters struct {
	every  time.Duration
	atOnce int

	mu        sync.Mutex
	byPeer    map[netip.Addr]*list.Element // elements of the lists in byNetwork
	byNetwork map[netip.Prefix]*list.List  // list values have type peerLimiter; the most recently used is at the back
}

type peerLimiter struct {
	from    netip.Addr
	limiter *rate.Limiter
}

// newPeerLimiters returns limiters that allow each peer atOnce requests, and then one request per interval
// every.
func newPeerLimiters(every time.Duration, atOnce int) *peerLimiters {
	return &peerLimiters{every: every, atOnce: atOnce, byPeer: map[netip.Addr]*list.Element{}, byNetwork: map[netip.Prefix]*list.List{}}
}

// exhausted reports whether a peer has reached its limit. It counts nothing.
func (p *peerLimiters) exhausted(from netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byPeer[from]
	return ok && e.Value.(peerLimiter).limiter.Tokens() < 1
}

// allow counts a request of a peer, and reports whether it is within the limit.
func (p *peerLimiters) allow(from netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limiterOf(from).Allow()
}

// limiterOf returns the limiter of a peer, and moves it to the back of its list. p.mu must be held.
func (p *peerLimiters) limiterOf(from netip.Addr) *rate.Limiter {
	network := networkOf(from)
	if e, ok := p.byPeer[from]; ok {
		p.byNetwork[network].MoveToBack(e)
		return e.Value.(peerLimiter).limiter
	}
	if len(p.byPeer) >= maxPeers {
		p.removeOne()
	}
	l, ok := p.byNetwork[network]
	if !ok {
		l = list.New()
		p.byNetwork[network] = l
	}
	limiter := rate.NewLimiter(rate.Every(p.every), p.atOnce)
	p.byPeer[from] = l.PushBack(peerLimiter{from, limiter})
	return limiter
}

// removeOne removes the least recently used limiter of the network with the most peers. p.mu must be held.
func (p *peerLimiters) removeOne() {
	var fullest netip.Prefix
	peers := 0
	for network, l := range p.byNetwork {
		if l.Len() > peers {
			fullest, peers = network, l.Len()
		}
	}
	l := p.byNetwork[fullest]
	delete(p.byPeer, l.Remove(l.Front()).(peerLimiter).from)
	if l.Len() == 0 {
		delete(p.byNetwork, fullest)
	}
}

// networkOf returns the /24 network of an IPv4 address or the /48 network of an IPv6 address, which is the size
// that one customer of an internet provider usually has at most. It returns the zero prefix for the zero address.
func networkOf(from netip.Addr) netip.Prefix {
	bits := 24
	if from.Is6() {
		bits = 48
	}
	network, _ := from.Prefix(bits)
	return network
}
