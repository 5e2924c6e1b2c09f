package connection

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"perch/limit"
)

const (
	rivalWait      = 500 * time.Millisecond // for the retained messages of another appliance
	abandonedAfter = time.Minute            // offline, an appliance's topics are free
)

// rivals watches for other appliances under the same base topic: two would contradict each other
// forever.
type rivals struct {
	id      string // this appliance's
	started time.Time
	news    chan struct{} // has room for one: conflict has something to return

	mu      sync.Mutex
	other   appliance
	offline time.Time // when bridge/status became offline
	ours    bool      // this appliance has claimed the topics, and publishes bridge/status
	logged  string    // the id that conflict has returned
}

// appliance is the part of bridge/info by which appliances tell who may use the topics.
type appliance struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started"`
}

func newRivals(id string, started time.Time) *rivals {
	return &rivals{id: id, started: started.Truncate(time.Second), news: make(chan struct{}, 1)}
}

// reset prepares for a new connection. The time that the bridge went offline remains.
func (r *rivals) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.other, r.ours = appliance{}, false
}

// onInfo handles a message on bridge/info.
func (r *rivals) onInfo(payload []byte) {
	var a appliance
	if len(payload) > 0 && (len(payload) > limit.Body || json.Unmarshal(payload, &a) != nil || len(a.ID) > 64) {
		return // not an appliance's
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case a.ID == r.id && r.ours: // our own message
	case a.ID == r.id:
		r.other = appliance{}
	default:
		r.other = a
		wakeUp(r.news)
	}
}

// onStatus handles a message on bridge/status.
func (r *rivals) onStatus(status string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case status == "online":
		r.offline = time.Time{}
		return
	case r.offline.IsZero():
		r.offline = time.Now()
	}
	if r.ours {
		wakeUp(r.news) // another program published it in our name
	}
}

// claim reports whether no other appliance uses the topics, or one that has been offline for long.
// They are this appliance's from then on.
func (r *rivals) claim(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	abandoned := !r.offline.IsZero() && now.Sub(r.offline) >= abandonedAfter
	if r.other.ID != "" && !abandoned {
		return false
	}
	r.ours, r.other = true, appliance{}
	return true
}

// conflict returns the id of another appliance that publishes under claimed topics, each once. If
// older is true it started first, and this appliance has to leave.
func (r *rivals) conflict() (older bool, other string) {
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
	r.other = appliance{}
	if r.logged == o.ID {
		return false, ""
	}
	r.logged = o.ID
	return false, o.ID
}

// online reports whether another appliance publishes now.
func (r *rivals) online() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.other.ID != "" && r.offline.IsZero()
}

// err returns why this appliance publishes nothing.
func (r *rivals) err(base string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Errorf("another appliance (id %q) publishes under the base topic %q, so this one keeps off; "+
		"give one of them another mqtt.base_topic", r.other.ID, base)
}
