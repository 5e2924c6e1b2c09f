package connection

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"sync"
	"time"
)

// Bounds of an outbox, in messages.
const (
	mostQueued  = 2048 // some ten seconds of all robots talking
	mostNotices = 100  // while the broker is away
)

// Outbox holds the messages to publish. Adding one never blocks. Retained messages are stored by
// topic, so that all of them can be published again. While the broker is away, notifications wait
// and everything else that is not retained is dropped.
type Outbox struct {
	wake chan struct{} // has room for one: there may be a message to publish

	mu       sync.Mutex
	open     bool
	queue    []Parcel
	retained map[string][]Message // by topic; the broker retains the last
	order    []string             // the topics of retained, in the order of their first message
	notices  []Parcel             // notifications that wait for the broker
}

// Parcel is a message in the queue. A notification has an expiry: it is still worth publishing late,
// though not after that time.
type Parcel struct {
	Message
	expires time.Time
}

// NewOutbox returns an outbox whose broker is away.
func NewOutbox() *Outbox {
	return &Outbox{wake: make(chan struct{}, 1), retained: map[string][]Message{}}
}

// Add publishes a message. A retained one whose payload has not changed is skipped.
func (o *Outbox) Add(m Message) {
	if m.Retained {
		o.AddSteps([]Message{m})
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open {
		o.enqueue(Parcel{Message: m})
	}
}

// AddSteps publishes retained messages of one topic, one after the other. They are skipped if they
// are the same as before, and are published again together.
func (o *Outbox) AddSteps(steps []Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	topic, stored := steps[0].Topic, slices.Clone(steps)
	for i, m := range stored {
		if m.Again != nil {
			stored[i].Payload, stored[i].sum = nil, sha256.Sum256(m.Payload)
		}
	}
	before, known := o.retained[topic]
	if slices.EqualFunc(before, stored, func(a, b Message) bool { return bytes.Equal(a.Payload, b.Payload) && a.sum == b.sum }) {
		return
	}
	if !known {
		o.order = append(o.order, topic)
	}
	o.retained[topic] = stored
	o.republish(topic)
}

// AddNotice publishes a notification. While the broker is away it waits until it expires.
func (o *Outbox) AddNotice(m Message, expires time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := (Parcel{m, expires}); o.open {
		o.enqueue(p)
	} else {
		o.storeNotice(p)
	}
}

// Forget removes the retained messages of some topics from the outbox, and not from the broker.
func (o *Outbox) Forget(topics ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, topic := range topics {
		delete(o.retained, topic)
	}
	o.order = slices.DeleteFunc(o.order, func(topic string) bool { return slices.Contains(topics, topic) })
}

// Republish publishes the retained messages of some topics again, or of all topics if none is named.
func (o *Outbox) Republish(topics ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.open {
		return
	}
	if len(topics) == 0 {
		o.enqueueAll()
	}
	for _, topic := range topics {
		o.republish(topic)
	}
}

func (o *Outbox) republish(topic string) {
	for _, m := range o.retained[topic] {
		if o.open {
			o.enqueue(Parcel{Message: m})
		}
	}
}

// storeNotice stores a notification until the broker is connected. The oldest gives way.
func (o *Outbox) storeNotice(p Parcel) {
	if len(o.notices) >= mostNotices {
		o.notices = slices.Delete(o.notices, 0, 1)
	}
	o.notices = append(o.notices, p)
}

// enqueue appends to the queue. If the broker is so slow that the queue is full, the queue is
// replaced by all retained messages as they are now, and the notifications.
func (o *Outbox) enqueue(p Parcel) {
	if len(o.queue) < mostQueued+2*len(o.order) {
		o.queue = append(o.queue, p)
		wakeUp(o.wake)
		return
	}
	for _, q := range append(o.queue, p) {
		if !q.expires.IsZero() {
			o.storeNotice(q)
		}
	}
	o.queue = nil
	o.enqueueAll()
}

// enqueueAll queues all retained messages and the notifications that waited.
func (o *Outbox) enqueueAll() {
	for _, topic := range o.order {
		for _, m := range o.retained[topic] {
			o.queue = append(o.queue, Parcel{Message: m})
		}
	}
	o.queue = append(o.queue, o.notices...)
	o.notices = nil
	wakeUp(o.wake)
}

// wakeUp wakes the reader of a channel with room for one.
func wakeUp(reader chan<- struct{}) {
	select {
	case reader <- struct{}{}:
	default: // it has not read the last one yet
	}
}

// Open records that the broker is connected, and queues everything for it.
func (o *Outbox) Open() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open, o.queue = true, nil
	o.enqueueAll()
}

// Close records that the broker is away. Of the messages that it has not confirmed, and of the
// queue, notifications are stored.
func (o *Outbox) Close(unconfirmed []Parcel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := slices.Concat(unconfirmed, o.queue, o.notices)
	o.open, o.queue, o.notices = false, nil, nil
	for _, p := range all {
		if !p.expires.IsZero() {
			o.storeNotice(p)
		}
	}
}

// Next removes the next message from the queue and returns it with its payload. Notifications that
// have expired are skipped.
func (o *Outbox) Next(now time.Time) (Parcel, bool) {
	p, found := o.dequeue(now)
	if p.Again != nil {
		p.Payload = p.Again()
	}
	return p, found
}

func (o *Outbox) dequeue(now time.Time) (Parcel, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) > 0 {
		p := o.queue[0]
		o.queue = o.queue[1:]
		if p.expires.IsZero() || now.Before(p.expires) {
			return p, true
		}
	}
	return Parcel{}, false
}
