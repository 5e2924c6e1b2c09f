package homeassistant

import (
	"fmt"
	"testing"
	"time"
)

// TestQueueIsBounded: a broker that is slower than the hub gets the latest states,
// not those between; notifications are all published.
func TestQueueIsBounded(t *testing.T) {
	o := newOutbox()
	o.connected()
	for i := range 100_000 {
		o.put(message{topic: "perch/a/state", payload: fmt.Append(nil, i), retained: true})
		o.put(message{topic: "perch/a/tool", payload: fmt.Append(nil, i)})
		if i%5000 == 0 {
			o.putNotice(message{topic: "perch/a/notification", payload: fmt.Append(nil, i)}, time.Now().Add(time.Hour))
		}
		if len(o.queue) > mostQueued+mostNotices+2 {
			t.Fatalf("%d messages wait", len(o.queue))
		}
	}
	var last string
	notices := 0
	for p, some := o.take(time.Now()); some; p, some = o.take(time.Now()) {
		switch p.topic {
		case "perch/a/state":
			last = string(p.payload)
		case "perch/a/notification":
			notices++
		}
	}
	if last != "99999" || notices != 20 {
		t.Errorf("the last state is %s, %d notifications", last, notices)
	}
}

// TestUnconfirmed: a notification the broker did not confirm is published again,
// and telemetry is not.
func TestUnconfirmed(t *testing.T) {
	o := newOutbox()
	o.connected()
	later := time.Now().Add(time.Hour)
	o.putNotice(message{topic: "n", payload: []byte("1")}, later)
	o.put(message{topic: "t", payload: []byte("x")})
	o.putNotice(message{topic: "n", payload: []byte("2")}, later)
	first, _ := o.take(time.Now())
	o.disconnected([]parcel{first})
	if o.connected() != 0 {
		t.Error("a notification was counted as dropped")
	}
	for _, want := range []string{"1", "2"} {
		if p, _ := o.take(time.Now()); string(p.payload) != want {
			t.Errorf("%s, want %s", p.payload, want)
		}
	}
	if p, some := o.take(time.Now()); some {
		t.Errorf("%s was published late", p.payload)
	}
}
