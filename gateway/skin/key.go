package skin

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"perch/gateway/door"
)

// Subprotocols of RFC 6455, section 1.9. A browser can set no header where it
// opens a WebSocket but this one: it asks for vtuber.v1, which it is answered
// with, and for one that holds the key, which is never repeated.
const (
	subprotocol = "vtuber.v1"
	bearer      = "bearer."
)

// withKey has a check find the key where skins have to put it. A key in the
// header comes first.
func withKey(query bool, check func(*http.Request) error) func(*http.Request) error {
	return func(r *http.Request) error {
		if key := keyOfUpgrade(r, query); key != "" && r.Header.Get("Authorization") == "" {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+key)
		}
		return check(r)
	}
}

// keyOfUpgrade is the key in a request to open a WebSocket, or empty.
func keyOfUpgrade(r *http.Request, query bool) string {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return ""
	}
	for _, line := range r.Header.Values("Sec-Websocket-Protocol") {
		for name := range strings.SplitSeq(line, ",") {
			coded, is := strings.CutPrefix(strings.TrimSpace(name), bearer)
			if !is {
				continue
			}
			// A subprotocol's name may not hold the padding; some send it all the same.
			if key, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(coded, "=")); err == nil {
				return string(key)
			}
		}
	}
	if query {
		return r.URL.Query().Get("token")
	}
	return ""
}

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

// peerOf is the address at the other end. Those that have none count as one.
func peerOf(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	a, _ := netip.ParseAddr(host) // the zero address where it is none
	return a.Unmap()
}
