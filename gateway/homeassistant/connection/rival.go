package connection

import (
	"encoding/json"
	"fmt"
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
	other   appliance
	offline time.Time // when bridge/status became offline
	ours    bool      // this appliance has claimed the topics, and publishes bridge/status
}

// appliance is the part of bridge/info that decides which appliance may use the topics.
type appliance struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started"`
}

func newRivals(id string, started time.Time) *rivals {
	return &rivals{id: id, started: started.Truncate(time.Second)}
}

// reset prepares for a new connection. The time that the bridge went offline remains.
func (r *rivals) reset() {
	r.other, r.ours = appliance{}, false
}

// onInfo handles a message on bridge/info, and reports whether there may be a conflict.
func (r *rivals) onInfo(payload []byte) bool {
	var a appliance
	if len(payload) > 0 && (len(payload) > limit.Body || json.Unmarshal(payload, &a) != nil || len(a.ID) > 64) {
		return false // not an appliance's
	}
	if a.ID != r.id {
		r.other = a
		return true
	}
	if !r.ours { // otherwise it is our own message
		r.other = appliance{}
	}
	return false
}

// onStatus handles a message on bridge/status, and reports whether another program has published it
// in this appliance's name.
func (r *rivals) onStatus(status string) bool {
	if status == "online" {
		r.offline = time.Time{}
		return false
	}
	if r.offline.IsZero() {
		r.offline = time.Now()
	}
	return r.ours
}

// claim reports whether no other appliance uses the topics, or only an abandoned one. They are this
// appliance's from then on.
func (r *rivals) claim(now time.Time) bool {
	abandoned := !r.offline.IsZero() && now.Sub(r.offline) >= abandonedAfter
	if r.other.ID != "" && !abandoned {
		return false
	}
	r.ours, r.other = true, appliance{}
	return true
}

// conflict returns the id of another appliance that has published under claimed topics. If older is
// true it started first, and this appliance has to leave.
func (r *rivals) conflict() (older bool, other string) {
	o := r.other
	if o.ID == "" {
		return false, ""
	}
	started := o.Started.Truncate(time.Second)
	if !o.Started.IsZero() && started.Before(r.started) || started.Equal(r.started) && o.ID < r.id {
		return true, o.ID
	}
	r.other = appliance{}
	return false, o.ID
}

// online reports whether another appliance publishes now.
func (r *rivals) online() bool {
	return r.other.ID != "" && r.offline.IsZero()
}

// err returns why this appliance publishes nothing.
func (r *rivals) err(base string) error {
	return fmt.Errorf("another appliance (id %q) publishes under the base topic %q, so this one keeps off; "+
		"give one of them another mqtt.base_topic", r.other.ID, base)
}
