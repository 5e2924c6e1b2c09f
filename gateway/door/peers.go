package door

import (
	"container/list"
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

// mostPeers bounds how many visitors are remembered.
const mostPeers = 1000

// visitors are one limiter for each of the latest visitors. Where there are too
// many, one gives way of the network that has the most of them, the one that was
// not seen for the longest: who has many addresses has only those forgotten that
// are his. Whoever holds it, locks it.
type visitors struct {
	every     time.Duration
	atOnce    int
	byPeer    map[netip.Addr]*list.Element
	byNetwork map[netip.Prefix]*list.List // the latest is last
}

// visitor is an address, and what it still may do.
type visitor struct {
	from    netip.Addr
	limiter *rate.Limiter
}

func newVisitors(every time.Duration, atOnce int) visitors {
	return visitors{every, atOnce, map[netip.Addr]*list.Element{}, map[netip.Prefix]*list.List{}}
}

// known is the limiter of an address, or nil.
func (v *visitors) known(from netip.Addr) *rate.Limiter {
	e, known := v.byPeer[from]
	if !known {
		return nil
	}
	return e.Value.(visitor).limiter
}

// seen is the limiter of an address that has come.
func (v *visitors) seen(from netip.Addr) *rate.Limiter {
	network := networkOf(from)
	if e, known := v.byPeer[from]; known {
		v.byNetwork[network].MoveToBack(e)
		return e.Value.(visitor).limiter
	}
	if len(v.byPeer) >= mostPeers {
		v.forgetOne()
	}
	l, known := v.byNetwork[network]
	if !known {
		l = list.New()
		v.byNetwork[network] = l
	}
	limiter := rate.NewLimiter(rate.Every(v.every), v.atOnce)
	v.byPeer[from] = l.PushBack(visitor{from, limiter})
	return limiter
}

func (v *visitors) forgetOne() {
	var fullest netip.Prefix
	most := 0
	for network, l := range v.byNetwork {
		if l.Len() > most {
			fullest, most = network, l.Len()
		}
	}
	l := v.byNetwork[fullest]
	delete(v.byPeer, l.Remove(l.Front()).(visitor).from)
	if l.Len() == 0 {
		delete(v.byNetwork, fullest)
	}
}

// networkOf is what one household, office or provider's customer may have.
func networkOf(from netip.Addr) netip.Prefix {
	bits := 24
	if from.Is6() {
		bits = 48
	}
	network, err := from.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // of no address
	}
	return network
}
