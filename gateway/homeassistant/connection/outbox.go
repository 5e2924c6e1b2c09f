package connection

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"sync"
	"time"
)

// Limits of an outbox, in messages.
const (
	maxQueued  = 2048 // about ten seconds of messages while all robots are in a conversation
	maxNotices = 100  // notifications that wait while the broker is disconnected
)

// Outbox holds the messages to publish. Adding a message never waits for the broker. Retained messages are stored by
// topic, so that all of them can be published again. While the broker is disconnected, notifications wait, and all other
// messages that are not retained are dropped. The methods are safe for concurrent use.
type Outbox struct {
	wake chan struct{} // gets a value after messages were queued; has a buffer of one value

	mu       sync.Mutex
	open     bool // the broker is connected
	queue    []Parcel
	retained map[string][]Message // the messages that are published on each topic, in order; the broker retains the last
	order    []string             // keys of retained, in the order that they were added
	notices  []Parcel             // notifications that wait for the broker, oldest first
}

// Parcel is a queued message or a notification that waits for the broker.
type Parcel struct {
	Message
	expires time.Time // a notification waits for the broker until this time; zero for all other messages
}

// NewOutbox returns an outbox for a broker that is not connected yet.
func NewOutbox() *Outbox {
	return &Outbox{wake: make(chan struct{}, 1), retained: map[string][]Message{}}
}

// Add queues a message. It skips a retained message whose payload has not changed, and drops any other message while the
// broker is disconnected.
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

// AddSteps queues one or more retained messages of one topic, which are always published together and in this
// order. It does nothing if all of them are unchanged.
func (o *Outbox) AddSteps(steps []Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	topic, stored := steps[0].Topic, slices.Clone(steps)
	for i, m := range stored {
		if m.MakePayload != nil {
			stored[i].Payload, stored[i].sum = nil, sha256.Sum256(m.Payload)
		}
	}
	old, known := o.retained[topic]
	if slices.EqualFunc(old, stored, func(a, b Message) bool { return bytes.Equal(a.Payload, b.Payload) && a.sum == b.sum }) {
		return
	}
	if !known {
		o.order = append(o.order, topic)
	}
	o.retained[topic] = stored
	o.republish(topic)
}

// AddNotice queues a notification. While the broker is disconnected the notification waits until it expires.
func (o *Outbox) AddNotice(m Message, expires time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := (Parcel{m, expires}); o.open {
		o.enqueue(p)
	} else {
		o.storeNotice(p)
	}
}

// Forget removes the retained messages of some topics from the outbox. It does not remove them from the broker.
func (o *Outbox) Forget(topics ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, topic := range topics {
		delete(o.retained, topic)
	}
	o.order = slices.DeleteFunc(o.order, func(topic string) bool { return slices.Contains(topics, topic) })
}

// Republish queues the retained messages of the given topics again, or of all topics if none is given.
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

// republish queues the retained messages of a topic if the broker is connected. The lock must be held.
func (o *Outbox) republish(topic string) {
	for _, m := range o.retained[topic] {
		if o.open {
			o.enqueue(Parcel{Message: m})
		}
	}
}

// storeNotice stores a notification until the broker is connected. If maxNotices are stored already, it drops the
// oldest. The lock must be held.
func (o *Outbox) storeNotice(p Parcel) {
	if len(o.notices) >= maxNotices {
		o.notices = slices.Delete(o.notices, 0, 1)
	}
	o.notices = append(o.notices, p)
}

// enqueue appends a message to the queue. The size of the queue is maxQueued messages and two more for each topic with
// retained messages. If the queue is full because the broker is slow, enqueue replaces all queued messages with the
// present retained messages and the notifications. The lock must be held.
func (o *Outbox) enqueue(p Parcel) {
	if len(o.queue) < maxQueued+2*len(o.order) {
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

// enqueueAll queues all retained messages and the stored notifications. The lock must be held.
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

// wakeUp sends a value to a channel with a buffer of one value, unless the buffer is full.
func wakeUp(reader chan<- struct{}) {
	select {
	case reader <- struct{}{}:
	default:
	}
}

// Open records that the broker is connected, and queues all retained messages and waiting notifications.
func (o *Outbox) Open() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open, o.queue = true, nil
	o.enqueueAll()
}

// Close records that the broker is disconnected. It stores the notifications among the unconfirmed and the
// queued messages, and drops the other messages.
func (o *Outbox) Close(unconfirmed []Parcel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	parcels := slices.Concat(unconfirmed, o.queue, o.notices)
	o.open, o.queue, o.notices = false, nil, nil
	for _, p := range parcels {
		if !p.expires.IsZero() {
			o.storeNotice(p)
		}
	}
}

// Next removes the next message from the queue and returns it with its payload. It skips expired notifications.
// It returns false if the queue is empty.
func (o *Outbox) Next(now time.Time) (Parcel, bool) {
	p, found := o.dequeue(now)
	if p.MakePayload != nil {
		p.Payload = p.MakePayload()
	}
	return p, found
}

// dequeue is like Next, but does not call MakePayload, so that Next can call MakePayload without holding the lock.
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
