package httpserver

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// mostPeers bounds how many peers are remembered.
const mostPeers = 1000

// peerLimiters has a limiter for each of the latest peers. If there are too many, the
// network with the most peers loses its least recent one: a client with many addresses
// pushes out its own only.
type peerLimiters struct {
	every  time.Duration
	atOnce int

	mu        sync.Mutex
	byPeer    map[netip.Addr]*list.Element
	byNetwork map[netip.Prefix]*list.List // the latest is last
}

// peerLimiter is an address and its limiter.
type peerLimiter struct {
	from    netip.Addr
	limiter *rate.Limiter
}

func newPeerLimiters(every time.Duration, atOnce int) *peerLimiters {
	return &peerLimiters{every: every, atOnce: atOnce, byPeer: map[netip.Addr]*list.Element{}, byNetwork: map[netip.Prefix]*list.List{}}
}

// exhausted reports whether an address has reached its limit.
func (p *peerLimiters) exhausted(from netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, known := p.byPeer[from]
	return known && e.Value.(peerLimiter).limiter.Tokens() < 1
}

// allow counts a request of an address, and reports whether it is within the limit.
func (p *peerLimiters) allow(from netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limiterOf(from).Allow()
}

// limiterOf returns the limiter of an address, which becomes the latest. The lock must be held.
func (p *peerLimiters) limiterOf(from netip.Addr) *rate.Limiter {
	network := networkOf(from)
	if e, known := p.byPeer[from]; known {
		p.byNetwork[network].MoveToBack(e)
		return e.Value.(peerLimiter).limiter
	}
	if len(p.byPeer) >= mostPeers {
		p.forgetOne()
	}
	l, known := p.byNetwork[network]
	if !known {
		l = list.New()
		p.byNetwork[network] = l
	}
	limiter := rate.NewLimiter(rate.Every(p.every), p.atOnce)
	p.byPeer[from] = l.PushBack(peerLimiter{from, limiter})
	return limiter
}

func (p *peerLimiters) forgetOne() {
	var fullest netip.Prefix
	most := 0
	for network, l := range p.byNetwork {
		if l.Len() > most {
			fullest, most = network, l.Len()
		}
	}
	l := p.byNetwork[fullest]
	delete(p.byPeer, l.Remove(l.Front()).(peerLimiter).from)
	if l.Len() == 0 {
		delete(p.byNetwork, fullest)
	}
}

// networkOf is as large a network as one household, office or customer has.
func networkOf(from netip.Addr) netip.Prefix {
	bits := 24
	if from.Is6() {
		bits = 48
	}
	network, _ := from.Prefix(bits) // zero for the zero address
	return network
}
