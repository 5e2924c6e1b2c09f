package homeassistant

import (
	"slices"
	"sync"
	"time"
)

// Limits of messages that wait to be published.
const (
	mostQueued  = 2048 // some ten seconds of all robots talking
	mostNotices = 100  // while the broker is away
)

// outbox holds what is to be published. To fill it never blocks: what is
// retained is kept by topic, so that all of it can be published anew; what is
// telemetry is dropped while the broker is away; notifications wait.
type outbox struct {
	wake chan struct{} // holds one; there may be something to take

	mu       sync.Mutex
	open     bool
	queue    []parcel
	retained map[string][]message // what leads to what is retained now comes with it
	order    []string             // topics of retained, in the order they first came
	notices  []parcel             // that wait for the broker
	dropped  int                  // since the broker was last here
}

// parcel is a message on its way. One with a time is a notification, which is
// worth being published later, though not beyond that time.
type parcel struct {
	message
	expires time.Time
}

func newOutbox() *outbox {
	return &outbox{wake: make(chan struct{}, 1), retained: map[string][]message{}}
}

// put publishes a message. A retained one without a change is left out.
func (o *outbox) put(m message) {
	if m.retained {
		o.putSteps([]message{m})
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open {
		o.push(parcel{message: m})
	} else {
		o.dropped++
	}
}

// putSteps publishes retained messages under one topic, of which the last
// stays. Whenever that is published anew, the steps to it are too.
func (o *outbox) putSteps(steps []message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	topic := steps[0].topic
	before, known := o.retained[topic]
	if slices.EqualFunc(before, steps, message.same) {
		return
	}
	if !known {
		o.order = append(o.order, topic)
	}
	o.retained[topic] = steps
	o.again(topic)
}

// forget drops retained messages from the outbox. The broker keeps its own.
func (o *outbox) forget(topics ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, topic := range topics {
		delete(o.retained, topic)
	}
	o.order = slices.DeleteFunc(o.order, func(topic string) bool { return slices.Contains(topics, topic) })
}

// again publishes what is retained under a topic.
func (o *outbox) again(topic string) {
	for _, m := range o.retained[topic] {
		if o.open {
			o.push(parcel{message: m})
		}
	}
}

// putNotice publishes a message that waits for the broker.
func (o *outbox) putNotice(m message, expires time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := parcel{m, expires}
	if o.open {
		o.push(p)
		return
	}
	o.keep(p)
}

func (o *outbox) keep(p parcel) {
	if len(o.notices) >= mostNotices {
		o.notices = slices.Delete(o.notices, 0, 1)
		o.dropped++
	}
	o.notices = append(o.notices, p)
}

// push queues. Where a broker is so slow that the queue is full, all that is
// retained is published as it is now in place of how it came to be.
func (o *outbox) push(p parcel) {
	if len(o.queue) >= mostQueued+2*len(o.order) {
		for _, q := range append(o.queue, p) {
			switch {
			case !q.expires.IsZero():
				o.keep(q)
			case !q.retained:
				o.dropped++
			}
		}
		o.queue = nil
		o.all()
	} else {
		o.queue = append(o.queue, p)
	}
	poke(o.wake)
}

// all queues what is retained, and the notifications that waited.
func (o *outbox) all() {
	for _, topic := range o.order {
		for _, m := range o.retained[topic] {
			o.queue = append(o.queue, parcel{message: m})
		}
	}
	o.queue = append(o.queue, o.notices...)
	o.notices = nil
}

// poke wakes the reader of a channel that holds one, if it is not awake.
func poke(reader chan<- struct{}) {
	select {
	case reader <- struct{}{}:
	default: // it has yet to see the last one
	}
}

// republish publishes again what is retained: under these topics, or all.
func (o *outbox) republish(topics ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.open {
		return
	}
	if len(topics) == 0 {
		o.all()
		poke(o.wake)
	}
	for _, topic := range topics {
		o.again(topic)
	}
}

// connected notes that the broker is connected, and returns how much was dropped
// without it.
func (o *outbox) connected() (dropped int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open, o.queue = true, nil
	o.all()
	poke(o.wake)
	dropped, o.dropped = o.dropped, 0
	return dropped
}

// disconnected notes that the broker is away. What it has not confirmed is
// given back.
func (o *outbox) disconnected(unconfirmed []parcel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := slices.Concat(unconfirmed, o.queue, o.notices)
	o.open, o.queue, o.notices = false, nil, nil
	for _, p := range all {
		if !p.expires.IsZero() {
			o.keep(p)
		}
	}
}

// take returns what is to be published next, with its payload. A notification whose time
// is over is left out.
func (o *outbox) take(now time.Time) (parcel, bool) {
	p, some := o.next(now)
	p.message = p.whole()
	return p, some
}

func (o *outbox) next(now time.Time) (parcel, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) > 0 {
		p := o.queue[0]
		o.queue = o.queue[1:]
		if p.expires.IsZero() || now.Before(p.expires) {
			return p, true
		}
	}
	return parcel{}, false
}
