package event

import (
	"context"
	"errors"
	"sort"
	"time"
)

// ErrClosed is returned by Next after the last event of a closed bus.
var ErrClosed = errors.New("the event bus is closed")

// Reader is a cursor in the bus. It is not safe for concurrent use and needs no closing.
type Reader struct {
	bus    *Bus
	next   [3]uint64 // per ring, the number of the next envelope to read
	missed uint64
	last   uint64 // Seq of the last envelope read
}

// ReadFrom returns a reader that begins with the first event whose Seq is at
// least seq. If events from there on have already been overwritten, the reader
// begins with Missed.
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

// Read returns a reader of the events published from now on.
func (b *Bus) Read() *Reader { return b.ReadFrom(b.Seq() + 1) }

// Each calls take with every event in order, until ctx or the bus ends.
func (r *Reader) Each(ctx context.Context, take func(Envelope)) {
	for {
		e, err := r.Next(ctx)
		if err != nil {
			return
		}
		take(e)
	}
}

// Pump sends every event, in order, until ctx ends or the bus is closed, and
// then closes to. It is for a loop that also waits for other channels.
func (r *Reader) Pump(ctx context.Context, to chan<- Envelope) {
	defer close(to)
	r.Each(ctx, func(e Envelope) {
		select {
		case to <- e:
		case <-ctx.Done():
		}
	})
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

// dequeue returns Missed if events were lost, or else the next envelope if there is one.
func (r *Reader) dequeue() (Envelope, bool) {
	lowest, from := (*Envelope)(nil), 0
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
			lowest, from = e, i
		}
	}
	if n := r.missed; n > 0 {
		r.missed = 0
		return Envelope{Seq: r.last, At: time.Now(), Event: Missed{N: n}}, true
	}
	if lowest == nil {
		return Envelope{}, false
	}
	r.next[from]++
	r.last = lowest.Seq
	return *lowest, true
}
