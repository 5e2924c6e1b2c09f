package skin

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"

	"perch/gateway/door"
)

// subprotocol is what a browser asks for beside the one that holds its key
// (door.InUpgrade), and is answered with.
const subprotocol = "vtuber.v1"

// Usual bounds of who is connected.
const (
	usualMost      = 1000
	usualMostOfOne = 100
)

// places are for as many skins as may be connected at a time.
type places struct {
	most, mostOfOne int

	mu     sync.Mutex
	taken  int
	byPeer map[netip.Addr]int
}

func newPlaces(most, mostOfOne int) *places {
	if most <= 0 {
		most = usualMost
	}
	if mostOfOne <= 0 {
		mostOfOne = usualMostOfOne
	}
	return &places{most: most, mostOfOne: mostOfOne, byPeer: map[netip.Addr]int{}}
}

// enter takes a place. What it returns gives it back.
func (p *places) enter(from netip.Addr) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken >= p.most:
		return nil, full(fmt.Sprintf("%d skins are connected, and no more are let in", p.most))
	case p.byPeer[from] >= p.mostOfOne:
		return nil, full(fmt.Sprintf("%d skins are connected from this address, and no more are let in; close some", p.mostOfOne))
	}
	p.taken++
	p.byPeer[from]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken--
		if p.byPeer[from]--; p.byPeer[from] == 0 {
			delete(p.byPeer, from)
		}
	}, nil
}

func full(why string) error {
	return &door.Fault{Word: "too_many_skins", Sentence: why, HTTP: http.StatusServiceUnavailable}
}
