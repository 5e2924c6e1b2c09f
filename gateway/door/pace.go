package door

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
