package httpserver

import (
	"net/http"
	"time"
)

// Pace bounds how often a peer (see PeerOf) may send requests to doors without a
// key, or with the robots' tokens. Programs of this machine are not counted: one
// of them may be a proxy for everybody.
type Pace struct{ peers *peerLimiters }

// The robots of a home come back at once after a power cut, and all from one
// address where they are behind another router.
const (
	comeAtOnce = 200
	comeEvery  = 50 * time.Millisecond
)

// NewPace returns one with room for 200 requests at once and 20 in a second.
func NewPace() *Pace { return &Pace{peers: newPeerLimiters(comeEvery, comeAtOnce)} }

// Check refuses a request of an address that comes too often.
func (p *Pace) Check(r *http.Request) error { return p.CheckPeer(r.RemoteAddr) }

// refusedAfter is how long CheckSlowly holds back what it refuses.
const refusedAfter = time.Second

// CheckSlowly is Check that refuses after a second: a client that does not wait by itself
// gets a refusal a second on each of its connections, instead of thousands.
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

// OnRefusal is a lock that counts whom another refuses.
func (p *Pace) OnRefusal(lock func(*http.Request) error) func(*http.Request) error {
	return func(r *http.Request) error {
		err := lock(r)
		if err == nil {
			return nil
		}
		if slow := p.CheckSlowly(r); slow != nil {
			return slow
		}
		return err
	}
}

// CheckPeer is Check for what is no request: a connection from a host and port.
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
