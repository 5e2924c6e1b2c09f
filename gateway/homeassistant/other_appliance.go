package homeassistant

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// How long to look for another appliance, and how long one may be offline
// before its topics are taken for abandoned.
const (
	lookFor      = 500 * time.Millisecond
	abandonedFor = time.Minute
)

// bridgeInfo is what an appliance says of itself under its base topic.
type bridgeInfo struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Robots  int    `json:"robots"` // whose channel is open
	// Strangers are the robots that nobody has adopted by name.
	Strangers int       `json:"strangers"`
	Waiting   int       `json:"waiting"` // agents without a robot that wait for somebody
	Started   time.Time `json:"started"`
	Host      string    `json:"host"`            // on the network, "perch.local"; empty while it has none
	Taken     string    `json:"taken,omitempty"` // the name it was to have, which another machine has
}

// rivals looks after the base topic: two appliances that publish under one
// would contradict each other without end.
type rivals struct {
	id      string
	started time.Time
	news    chan struct{} // holds one; contest has something to say

	mu      sync.Mutex
	other   bridgeInfo
	offline time.Time // since when the bridge's status says so
	ours    bool      // the topics are, and so is the word on the status
	told    string    // of whom was told
}

func newRivals(id string, started time.Time) *rivals {
	return &rivals{id: id, started: started.Truncate(time.Second), news: make(chan struct{}, 1)}
}

// forget begins anew on a new connection. Since when the bridge is offline is
// remembered.
func (r *rivals) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.other, r.ours = bridgeInfo{}, false
}

// info takes what is published as bridge/info.
func (r *rivals) info(payload []byte) {
	var b bridgeInfo
	if len(payload) > 0 && (len(payload) > mostPayload || json.Unmarshal(payload, &b) != nil || len(b.ID) > 64) {
		return // of nobody who could be kept off from
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case b.ID == r.id && r.ours: // our own word
	case b.ID == r.id:
		r.other = bridgeInfo{}
	default:
		r.other = b
		r.poke()
	}
}

// status takes what is published as bridge/status.
func (r *rivals) status(word string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case word == "online":
		r.offline = time.Time{}
		return
	case r.offline.IsZero():
		r.offline = time.Now()
	}
	if r.ours {
		r.poke() // somebody else's word, in our place
	}
}

func (r *rivals) poke() {
	select {
	case r.news <- struct{}{}:
	default: // it is known already
	}
}

// gone reports whether there is no other appliance, or one that has been
// offline for long; then the topics are ours.
func (r *rivals) gone(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	abandoned := !r.offline.IsZero() && now.Sub(r.offline) >= abandonedFor
	if r.other.ID != "" && !abandoned {
		return false
	}
	r.ours, r.other = true, bridgeInfo{}
	return true
}

// contest tells of another appliance under topics that are taken as ours. The
// one that started first has the older right. Each other one is told once.
func (r *rivals) contest() (older bool, other string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.other
	if o.ID == "" {
		return false, ""
	}
	started := o.Started.Truncate(time.Second)
	if !o.Started.IsZero() && started.Before(r.started) || started.Equal(r.started) && o.ID < r.id {
		return true, o.ID
	}
	r.other = bridgeInfo{}
	if r.told == o.ID {
		return false, ""
	}
	r.told = o.ID
	return false, o.ID
}

// there reports whether another appliance publishes now.
func (r *rivals) there() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.other.ID != "" && r.offline.IsZero()
}

// cause says why nothing is published.
func (r *rivals) cause(base string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("another appliance (id %q) publishes under the base topic %q, so this one keeps off; give one of them another mqtt.base_topic", r.other.ID, base)
}
