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
	offline time.Time // when bridge/status was first seen to be offline; zero before any status and while it is online
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

// reset prepares for a new connection. It leaves the field offline unchanged, so that a lost connection does not
// start abandonedAfter again.
func (r *rivals) reset() {
	r.other, r.claimed = appliance{}, false
}

// onInfo handles a message on bridge/info. It reports whether the message is not from this appliance: another
// appliance has published the message, or a program has published an empty message or one without an ID. It ignores a
// message that is too long or not valid JSON, or whose ID has more than 64 bytes.
func (r *rivals) onInfo(payload []byte) bool {
	var a appliance
	if len(payload) > 0 && (len(payload) > limit.Body || json.Unmarshal(payload, &a) != nil || len(a.ID) > 64) {
		return false // not published by an appliance
	}
	if a.ID != r.id {
		r.other = a
		return true
	}
	// After the claim, the message is what this appliance has just published, so the other appliance may still exist.
	if !r.claimed {
		r.other = appliance{}
	}
	return false
}

// onStatus handles a message on bridge/status. It reports whether another program has published a status other
// than "online" while this appliance is online.
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

// claim claims the topics for this appliance. It returns false if another appliance is known that has not been
// offline for at least abandonedAfter.
func (r *rivals) claim(now time.Time) bool {
	abandoned := !r.offline.IsZero() && now.Sub(r.offline) >= abandonedAfter
	if r.other.ID != "" && !abandoned {
		return false
	}
	r.claimed, r.other = true, appliance{}
	return true
}

// takeConflict returns the ID of another appliance that has published under the claimed topics, or "". precedes is
// true if the other appliance was started earlier, or in the same second and has the smaller ID; this appliance then has
// to stop publishing. precedes is false if the start time of the other appliance is unknown. If precedes is false,
// takeConflict forgets the other appliance.
func (r *rivals) takeConflict() (other string, precedes bool) {
	o := r.other
	if o.ID == "" {
		return "", false
	}
	started := o.Started.Truncate(time.Second)
	if !o.Started.IsZero() && started.Before(r.started) || started.Equal(r.started) && o.ID < r.id {
		return o.ID, true
	}
	r.other = appliance{}
	return o.ID, false
}

// isOtherOnline reports whether another appliance is known and has not been seen offline.
func (r *rivals) isOtherOnline() bool {
	return r.other.ID != "" && r.offline.IsZero()
}

// conflictError returns the error that says that another appliance uses the base topic.
func (r *rivals) conflictError(base string) error {
	return fmt.Errorf("another appliance (id %q) uses the base topic %q, so this one publishes nothing; "+
		"set another mqtt.base_topic on one of the two", r.other.ID, base)
}
