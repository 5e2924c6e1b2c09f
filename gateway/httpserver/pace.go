package httpserver

import (
	"cmp"
	"net/http"
	"time"
)

// Pace bounds the rate of a peer's requests (see PeerOf) without a key, or with the robots'
// tokens. Programs of this machine are not counted: one of them may be a proxy for all
// clients.
type Pace struct{ peers *peerLimiters }

// The robots of a home come back at once after a power cut, and may share an
// address, behind another router.
const (
	comeAtOnce = 200
	comeEvery  = 50 * time.Millisecond
)

// NewPace returns a Pace with room for 200 requests at once and 20 in a second.
func NewPace() *Pace { return &Pace{peers: newPeerLimiters(comeEvery, comeAtOnce)} }

// Check refuses a request of an address that sends too many.
func (p *Pace) Check(r *http.Request) error { return p.CheckPeer(r.RemoteAddr) }

// refusedAfter is the delay of CheckSlowly's refusals.
const refusedAfter = time.Second

// CheckSlowly is Check that refuses after a second: a client that does not wait by itself
// gets one refusal a second on each connection instead of thousands.
func (p *Pace) CheckSlowly(r *http.Request) error {
	err := p.Check(r)
	if err == nil {
		return nil
	}
	late := time.NewTimer(refusedAfter)
	defer late.Stop()
	select {
	case <-late.C:
	case <-r.Context().Done():
	}
	return err
}

// OnRefusal returns a check that counts the refusals of another.
func (p *Pace) OnRefusal(check func(*http.Request) error) func(*http.Request) error {
	return func(r *http.Request) error {
		err := check(r)
		if err == nil {
			return nil
		}
		return cmp.Or(p.CheckSlowly(r), err)
	}
}

// CheckPeer is Check for a connection from a host and port.
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
