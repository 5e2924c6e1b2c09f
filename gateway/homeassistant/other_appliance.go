package homeassistant

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"perch/limit"
)

// How long to look for another appliance, and how long one may be offline
// before its topics are taken for abandoned.
const (
	lookFor      = 500 * time.Millisecond
	abandonedFor = time.Minute
)

// bridgeInfo is what an appliance publishes of itself under its base topic.
type bridgeInfo struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Robots  int    `json:"robots"` // with an open channel
	// Strangers are the robots that were not adopted by name.
	Strangers int       `json:"strangers"`
	Waiting   int       `json:"waiting"` // agents without a robot that wait for a person
	Started   time.Time `json:"started"`
	Host      string    `json:"host"`            // on the network, "perch.local"; empty while it has none
	Taken     string    `json:"taken,omitempty"` // the name it was to have, which another machine has
}

// otherAppliance watches the base topic: two appliances that publish under one
// would contradict each other without end.
type otherAppliance struct {
	id      string
	started time.Time
	news    chan struct{} // holds one; contest has something to return

	mu      sync.Mutex
	other   bridgeInfo
	offline time.Time // since when bridge/status is offline
	ours    bool      // the topics are, and so is the word on the status
	noted   string    // the id that was logged
}

func newOtherAppliance(id string, started time.Time) *otherAppliance {
	return &otherAppliance{id: id, started: started.Truncate(time.Second), news: make(chan struct{}, 1)}
}

// forget begins anew on a new connection. Since when the bridge is offline is
// remembered.
func (r *otherAppliance) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.other, r.ours = bridgeInfo{}, false
}

// info takes what is published as bridge/info.
func (r *otherAppliance) info(payload []byte) {
	var b bridgeInfo
	if len(payload) > 0 && (len(payload) > limit.Body || json.Unmarshal(payload, &b) != nil || len(b.ID) > 64) {
		return // not the info of an appliance
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case b.ID == r.id && r.ours: // our own word
	case b.ID == r.id:
		r.other = bridgeInfo{}
	default:
		r.other = b
		poke(r.news)
	}
}

// status takes what is published as bridge/status.
func (r *otherAppliance) status(word string) {
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
		poke(r.news) // another program's message, in our name
	}
}

// gone reports whether there is no other appliance, or one that has been
// offline for long; then the topics are ours.
func (r *otherAppliance) gone(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	abandoned := !r.offline.IsZero() && now.Sub(r.offline) >= abandonedFor
	if r.other.ID != "" && !abandoned {
		return false
	}
	r.ours, r.other = true, bridgeInfo{}
	return true
}

// contest returns another appliance under topics that are taken as ours. The one
// that started first has the older right. Each other one is returned once.
func (r *otherAppliance) contest() (older bool, other string) {
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
	if r.noted == o.ID {
		return false, ""
	}
	r.noted = o.ID
	return false, o.ID
}

// there reports whether another appliance publishes now.
func (r *otherAppliance) there() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.other.ID != "" && r.offline.IsZero()
}

// cause is why nothing is published.
func (r *otherAppliance) cause(base string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Errorf("another appliance (id %q) publishes under the base topic %q, so this one keeps off; "+
		"give one of them another mqtt.base_topic", r.other.ID, base)
}
