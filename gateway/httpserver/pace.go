package httpserver

import (
	"cmp"
	"net/http"
	"time"
)

// Pace bounds the rate of each peer's requests (see PeerOf). It is meant for requests that need no key, robots'
// requests and MQTT connections, and requests whose key was refused. Requests from a loopback address or over a unix socket are not limited, because they may come
// from a proxy for all clients.
type Pace struct{ peers *peerLimiters }

// Limits of a peer. After a power cut, all robots of a home connect at the same time, and they may share an
// address behind a router.
const (
	requestsAtOnce = 200
	requestEvery   = 50 * time.Millisecond
)

// NewPace returns a Pace that allows each peer 200 requests at once, and then 20 in a second.
func NewPace() *Pace { return &Pace{peers: newPeerLimiters(requestEvery, requestsAtOnce)} }

// Check returns an error for a request of a peer that sends too many.
func (p *Pace) Check(r *http.Request) error { return p.CheckPeer(r.RemoteAddr) }

// refusalDelay is how long CheckSlowly waits before it returns an error.
const refusalDelay = time.Second

// CheckSlowly is like Check, but waits a second, or until the request is canceled, before it returns an error. A
// client that repeats refused requests at once then gets one error a second on each connection instead of thousands.
func (p *Pace) CheckSlowly(r *http.Request) error {
	err := p.Check(r)
	if err == nil {
		return nil
	}
	delay := time.NewTimer(refusalDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-r.Context().Done():
	}
	return err
}

// OnRefusal returns a check that counts only the requests that another check refuses. A peer with too many
// of them gets the error of CheckSlowly.
func (p *Pace) OnRefusal(check func(*http.Request) error) func(*http.Request) error {
	return func(r *http.Request) error {
		err := check(r)
		if err == nil {
			return nil
		}
		return cmp.Or(p.CheckSlowly(r), err)
	}
}

// CheckPeer is like Check for a connection from "host:port".
func (p *Pace) CheckPeer(remote string) error {
	from := PeerOf(remote)
	if from.IsLoopback() || !from.IsValid() {
		return nil
	}
	if !p.peers.allow(from) {
		return &Fault{Word: "too_many_requests", Sentence: "too many requests from this address; wait a moment", HTTP: http.StatusTooManyRequests}
	}
	return nil
}
