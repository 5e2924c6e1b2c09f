package event

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"perch/device"
)

// Sizes of the rings, in events. 4096 are some hours with several robots.
const (
	ringSize      = 4096
	perceivedSize = 1024
	moodSize      = 1024
)

// Bus carries events from publishers to readers. Close ends it.
type Bus struct {
	run    string
	trusts func(device.ID) bool // nil trusts all

	mu      sync.Mutex
	seq     uint64
	rings   [3]ring       // see ringOf
	changed chan struct{} // closed and replaced by the pump after each event
	closed  bool

	poke chan struct{}
	done chan struct{}
}

// ring holds the newest envelopes, ascending by Seq. The n-th envelope ever
// written is at n % len.
type ring struct {
	slots   []Envelope
	written uint64
	lost    uint64 // Seq of the newest envelope that was overwritten
}

func (r *ring) add(e Envelope) {
	slot := r.at(r.written)
	r.lost = slot.Seq // 0 in the first round
	*slot = e
	r.written++
}

// oldest returns the number of the oldest envelope still stored.
func (r *ring) oldest() uint64 {
	return max(r.written, uint64(len(r.slots))) - uint64(len(r.slots))
}

func (r *ring) at(n uint64) *Envelope { return &r.slots[n%uint64(len(r.slots))] }

// NewBusFor returns a bus that ignores the events of strangers: of an untrusted robot
// it carries only RobotSeen, RobotAdopted and RobotForgotten. A stranger's speech is
// shown nowhere, triggers nothing and cannot displace the events of other robots.
func NewBusFor(trusts func(device.ID) bool) *Bus {
	b := NewBus()
	b.trusts = trusts
	return b
}

// ofStrangers reports whether the bus carries an event of a stranger.
func ofStrangers(e Event) bool {
	switch e.(type) {
	case RobotSeen, RobotAdopted, RobotForgotten:
		return true
	}
	return false
}

// NewBus returns a bus with its pump running.
func NewBus() *Bus {
	run := make([]byte, 6)
	rand.Read(run) //nolint:errcheck // never fails, by its documentation
	b := &Bus{
		run:     hex.EncodeToString(run),
		changed: make(chan struct{}),
		poke:    make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	b.rings[0].slots = make([]Envelope, ringSize)
	b.rings[1].slots = make([]Envelope, perceivedSize)
	b.rings[2].slots = make([]Envelope, moodSize)
	go b.pump()
	return b
}

// Run returns this run's random name, the first half of an event's id.
func (b *Bus) Run() string { return b.run }

// ID returns the external id of the event with that number: "<run>.<seq>".
func (b *Bus) ID(seq uint64) string { return fmt.Sprintf("%s.%d", b.run, seq) }

// Resumes parses an id made by ID. ok is false if the id is malformed, of another
// run, or of an event that has not happened yet.
func (b *Bus) Resumes(id string) (seq uint64, ok bool) {
	run, number, found := strings.Cut(id, ".")
	if !found || run != b.run {
		return 0, false
	}
	seq, err := strconv.ParseUint(number, 10, 64)
	return seq, err == nil && seq <= b.Seq()
}

// Publish stamps an event and makes it readable. It takes one lock and never
// waits for a reader. After Close it does nothing.
func (b *Bus) Publish(robot device.ID, session string, e Event) {
	if b.trusts != nil && robot != "" && !ofStrangers(e) && !b.trusts(robot) {
		return
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return
	}
	b.seq++
	b.rings[ringOf(e)].add(Envelope{Seq: b.seq, At: time.Now(), Robot: robot, Session: session, Event: e})
	b.mu.Unlock()
	b.wake()
}

// ringOf returns the ring of an event: Perceived and Mood have separate ones, because
// they may come many times a second.
func ringOf(e Event) int {
	switch e.(type) {
	case Perceived:
		return 1
	case Mood:
		return 2
	}
	return 0
}

func (b *Bus) wake() {
	select {
	case b.poke <- struct{}{}:
	default: // a notification is pending and covers this change too
	}
}

// Seq returns the number of the latest event.
func (b *Bus) Seq() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seq
}

// pump wakes the waiting readers, so that publishers need not.
func (b *Bus) pump() {
	defer close(b.done)
	for closed := false; !closed; {
		<-b.poke
		b.mu.Lock()
		changed := b.changed
		b.changed, closed = make(chan struct{}), b.closed
		b.mu.Unlock()
		close(changed)
	}
}

// Close ends the bus: readers receive the remaining events and then ErrClosed.
func (b *Bus) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wake()
	<-b.done
}
