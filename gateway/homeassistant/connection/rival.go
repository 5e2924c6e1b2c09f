package connection

import (
	"encoding/json"
	"fmt"
	"time"

	"perch/limit"
)

const (
	rivalWait      = 500 * time.Millisecond // how long to wait for the retained messages of other appliances
	abandonedAfter = time.Minute            // how long an appliance has to be offline before another one may use its topics
)

// rivals detects other appliances that publish under the same base topic. Two appliances would overwrite each
// other's messages forever.
type rivals struct {
	id      string    // ID of this appliance
	started time.Time // when this appliance was started
	other   appliance // the other appliance; its ID is empty if no other is known
	offline time.Time // when bridge/status became offline; zero while it is online
	claimed bool      // this appliance has claimed the topics and publishes bridge/status
}

// appliance holds the fields of bridge/info that decide which of two appliances may use the topics.
type appliance struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started"`
}

func newRivals(id string, started time.Time) *rivals {
	return &rivals{id: id, started: started.Truncate(time.Second)}
}

// reset prepares for a new connection. It leaves the field offline unchanged.
func (r *rivals) reset() {
	r.other, r.claimed = appliance{}, false
}

// onInfo handles a message on bridge/info. It reports whether another appliance has published the message, or
// another program has deleted the retained one by an empty message.
func (r *rivals) onInfo(payload []byte) bool {
	var a appliance
	if len(payload) > 0 && (len(payload) > limit.Body || json.Unmarshal(payload, &a) != nil || len(a.ID) > 64) {
		return false // not published by an appliance
	}
	if a.ID != r.id {
		r.other = a
		return true
	}
	if !r.claimed { // after the claim it is a message that this appliance has just published
		r.other = appliance{}
	}
	return false
}

// onStatus handles a message on bridge/status. It reports whether another program has published "offline" while
// this appliance is online.
func (r *rivals) onStatus(status string) bool {
	if status == "online" {
		r.offline = time.Time{}
		return false
	}
	if r.offline.IsZero() {
		r.offline = time.Now()
	}
	return r.claimed
}

// claim claims the topics for this appliance. It returns false if another appliance uses the topics and has not
// been offline for abandonedAfter.
func (r *rivals) claim(now time.Time) bool {
	abandoned := !r.offline.IsZero() && now.Sub(r.offline) >= abandonedAfter
	if r.other.ID != "" && !abandoned {
		return false
	}
	r.claimed, r.other = true, appliance{}
	return true
}

// conflict returns the ID of another appliance that has published under the claimed topics, or "". If older is
// true, the other appliance was started earlier, or in the same second and has the smaller ID: this one then has
// to stop publishing.
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

// isOtherOnline reports whether another appliance is publishing under the topics.
func (r *rivals) isOtherOnline() bool {
	return r.other.ID != "" && r.offline.IsZero()
}

// conflictError returns the error for topics that another appliance uses.
func (r *rivals) conflictError(base string) error {
	return fmt.Errorf("another appliance (id %q) publishes under the base topic %q, so this one keeps off; "+
		"give one of them another mqtt.base_topic", r.other.ID, base)
}
