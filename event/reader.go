package event

import (
	"context"
	"errors"
	"sort"
	"sync"
	"time"
)

// ErrClosed is returned by Next after the last event of a closed bus.
var ErrClosed = errors.New("the event bus is closed")

// Reader reads the events of a bus in order. It is not safe for concurrent use, and need not be closed.
type Reader struct {
	bus    *Bus
	next   [3]uint64 // index of the next envelope in each ring
	missed uint64    // number of lost events that Missed has not reported yet
	last   uint64    // Seq of the last envelope that was read
}

// ReadFrom returns a reader of the events from the number seq on. If some of them were overwritten
// already, the first event that the reader returns is Missed.
func (b *Bus) ReadFrom(seq uint64) *Reader {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &Reader{bus: b, last: max(seq, 1) - 1}
	for i := range b.rings {
		ring := &b.rings[i]
		oldest := ring.oldest()
		n := sort.Search(int(ring.written-oldest), func(n int) bool {
			return ring.at(oldest+uint64(n)).Seq >= seq
		})
		r.next[i] = oldest + uint64(n)
		if ring.lost >= seq && ring.lost > 0 {
			r.missed += ring.lost - r.last
		}
	}
	return r
}

// Read returns a reader of the events that are published from now on.
func (b *Bus) Read() *Reader { return b.ReadFrom(b.Seq() + 1) }

// Each calls handle with every event in order, until ctx ends or the bus is closed.
func (r *Reader) Each(ctx context.Context, handle func(Envelope)) {
	for {
		e, err := r.Next(ctx)
		if err != nil {
			return
		}
		handle(e)
	}
}

// Events returns a channel that receives every event in order, until ctx ends, stop is called or
// the bus is closed; then the channel is closed. It is for callers that wait for other channels as
// well. The caller must call stop, which waits for the goroutine that reads the events.
func (r *Reader) Events(ctx context.Context) (events <-chan Envelope, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	to := make(chan Envelope)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(to)
		r.Each(ctx, func(e Envelope) {
			select {
			case to <- e:
			case <-ctx.Done():
			}
		})
	})
	return to, func() { cancel(); reading.Wait() }
}

// Next waits for the next event. It returns ctx.Err() if ctx ends first, and
// ErrClosed after the last event of a closed bus.
func (r *Reader) Next(ctx context.Context) (Envelope, error) {
	for {
		r.bus.mu.Lock()
		e, ok := r.dequeue()
		changed, closed := r.bus.changed, r.bus.closed
		r.bus.mu.Unlock()
		switch {
		case ok:
			return e, nil
		case closed:
			return Envelope{}, ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Envelope{}, ctx.Err()
		}
	}
}

// dequeue returns Missed if events were lost, and otherwise the next envelope, or false if none exists.
// The caller holds the bus's mu.
func (r *Reader) dequeue() (Envelope, bool) {
	lowest, lowestRing := (*Envelope)(nil), 0
	for i := range r.bus.rings {
		ring := &r.bus.rings[i]
		if oldest := ring.oldest(); r.next[i] < oldest {
			r.missed += oldest - r.next[i]
			r.next[i] = oldest
		}
		if r.next[i] == ring.written {
			continue
		}
		if e := ring.at(r.next[i]); lowest == nil || e.Seq < lowest.Seq {
			lowest, lowestRing = e, i
		}
	}
	if n := r.missed; n > 0 {
		r.missed = 0
		return Envelope{Seq: r.last, At: time.Now(), Event: Missed{N: n}}, true
	}
	if lowest == nil {
		return Envelope{}, false
	}
	r.next[lowestRing]++
	r.last = lowest.Seq
	return *lowest, true
}
