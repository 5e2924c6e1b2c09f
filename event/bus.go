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

// Sizes of the rings, in events. Several robots cause 4096 events in a few hours.
const (
	ringSize      = 4096
	perceivedSize = 1024
	moodSize      = 1024
)

// Bus carries events from publishers to readers. Its methods are safe for concurrent use.
type Bus struct {
	run    string               // random prefix of event IDs
	trusts func(device.ID) bool // reports whether a robot is adopted; nil trusts all

	mu      sync.Mutex
	seq     uint64        // number of the latest event
	rings   [3]ring       // index: see ringOf
	changed chan struct{} // closed and replaced by the pump after events were added or the bus was closed
	closed  bool

	poke chan struct{} // wakes the pump
	done chan struct{} // closed when the pump has ended
}

// ring holds the newest envelopes in the order of Seq. Envelopes are counted from 0, and the n-th is
// at slots[n%len(slots)].
type ring struct {
	slots   []Envelope
	written uint64 // number of envelopes that were written
	lost    uint64 // Seq of the newest envelope that was overwritten; 0 before the first
}

// add writes an envelope over the oldest one.
func (r *ring) add(e Envelope) {
	slot := r.at(r.written)
	r.lost = slot.Seq // 0 if the slot was empty
	*slot = e
	r.written++
}

// oldest returns the index of the oldest envelope in the ring.
func (r *ring) oldest() uint64 {
	return max(r.written, uint64(len(r.slots))) - uint64(len(r.slots))
}

// at returns the slot of the n-th envelope.
func (r *ring) at(n uint64) *Envelope { return &r.slots[n%uint64(len(r.slots))] }

// NewBusFor returns a bus that drops the events of strangers, except RobotSeen, RobotAdopted and
// RobotForgotten: a stranger's speech must not be shown, must not trigger anything, and must not
// displace the events of other robots. trusts reports whether a robot is adopted.
func NewBusFor(trusts func(device.ID) bool) *Bus {
	b := NewBus()
	b.trusts = trusts
	return b
}

// isAllowedForStrangers reports whether a bus of NewBusFor carries an event even for a stranger.
func isAllowedForStrangers(e Event) bool {
	switch e.(type) {
	case RobotSeen, RobotAdopted, RobotForgotten:
		return true
	}
	return false
}

// NewBus returns a bus that carries the events of all robots. Close ends its goroutine.
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

// RunID returns the random prefix of this bus's event IDs.
func (b *Bus) RunID() string { return b.run }

// ID returns the ID of an event in APIs: "<run>.<seq>".
func (b *Bus) ID(seq uint64) string { return fmt.Sprintf("%s.%d", b.run, seq) }

// ParseID parses the ID of an event. ok is false if the ID is malformed, from another bus, or of an
// event that has not been published yet.
func (b *Bus) ParseID(id string) (seq uint64, ok bool) {
	run, number, found := strings.Cut(id, ".")
	if !found || run != b.run {
		return 0, false
	}
	seq, err := strconv.ParseUint(number, 10, 64)
	return seq, err == nil && seq <= b.Seq()
}

// Publish gives an event its number and time, and makes it available to readers. robot and session may
// be empty. A bus of NewBusFor drops most events of strangers. Publish never waits for a reader. After
// Close it does nothing.
func (b *Bus) Publish(robot device.ID, session string, e Event) {
	if b.trusts != nil && robot != "" && !isAllowedForStrangers(e) && !b.trusts(robot) {
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

// ringOf returns the index of an event's ring. Perceived and Mood have their own rings, because they
// may be published many times per second.
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
	default: // the pump is about to wake already
	}
}

// Seq returns the number of the latest event.
func (b *Bus) Seq() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seq
}

// pump wakes the waiting readers. It has its own goroutine, so that Publish does not take longer with
// many readers.
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

// Close closes the bus and waits for its goroutine. Readers receive the remaining events and then
// ErrClosed.
func (b *Bus) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wake()
	<-b.done
}
