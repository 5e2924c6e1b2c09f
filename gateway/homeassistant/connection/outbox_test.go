package connection

import (
	"fmt"
	"testing"
	"time"
)

// TestQueueIsBounded tests that a broker that is slower than the hub gets the latest states, may miss earlier states, and
// gets all notifications.
func TestQueueIsBounded(t *testing.T) {
	o := NewOutbox()
	o.Open()
	for i := range 100_000 {
		o.Add(Message{Topic: "perch/a/state", Payload: fmt.Append(nil, i), Retained: true})
		o.Add(Message{Topic: "perch/a/tool", Payload: fmt.Append(nil, i)})
		if i%5000 == 0 {
			o.AddNotice(Message{Topic: "perch/a/notification", Payload: fmt.Append(nil, i)}, time.Now().Add(time.Hour))
		}
		if len(o.queue) > maxQueued+maxNotices+2 {
			t.Fatalf("%d messages wait", len(o.queue))
		}
	}
	var last string
	notices := 0
	for p, some := o.Next(time.Now()); some; p, some = o.Next(time.Now()) {
		switch p.Topic {
		case "perch/a/state":
			last = string(p.Payload)
		case "perch/a/notification":
			notices++
		}
	}
	if last != "99999" || notices != 20 {
		t.Errorf("the last state is %s, %d notifications", last, notices)
	}
}

// TestUnconfirmed tests that a notification that the broker did not confirm is published again on the next connection,
// and that a queued message that is neither retained nor a notification is dropped.
func TestUnconfirmed(t *testing.T) {
	o := NewOutbox()
	o.Open()
	later := time.Now().Add(time.Hour)
	o.AddNotice(Message{Topic: "n", Payload: []byte("1")}, later)
	o.Add(Message{Topic: "t", Payload: []byte("x")})
	o.AddNotice(Message{Topic: "n", Payload: []byte("2")}, later)
	first, _ := o.Next(time.Now())
	o.Close([]Parcel{first})
	o.Open()
	for _, want := range []string{"1", "2"} {
		if p, _ := o.Next(time.Now()); string(p.Payload) != want {
			t.Errorf("%s, want %s", p.Payload, want)
		}
	}
	if p, some := o.Next(time.Now()); some {
		t.Errorf("%s was published late", p.Payload)
	}
}

// TestPayloadsMadeAgainAreNotStored tests that the outbox stores only the hash of a payload that MakePayload can make
// again, skips an unchanged payload, and publishes the whole payload each time.
func TestPayloadsMadeAgainAreNotStored(t *testing.T) {
	o := NewOutbox()
	o.Open()
	payload := []byte("one")
	put := func() {
		o.AddSteps([]Message{{Topic: "t", Payload: payload, Retained: true, MakePayload: func() []byte { return payload }}})
	}
	next := func(want string) {
		t.Helper()
		p, _ := o.Next(time.Now())
		if stored := o.retained["t"][0]; string(p.Payload) != want || stored.Payload != nil {
			t.Errorf("published is %q, want %q; stored is %q", p.Payload, want, stored.Payload)
		}
	}
	put()
	next("one")
	put()
	next("")
	payload = []byte("two")
	put()
	next("two")
	o.Republish()
	next("two")
}
