package e2e

import (
	"time"
)

// figures are what a run counts.
type figures struct {
	talks, turns, understood int // of robots no fault has touched
	touched                  int // talks of the others
	early                    int // packets that came before the robot spoke
	late                     int // talks in which the machine stood still
	excused                  int // times a speaker ran dry for a reason
	sent, received           int // packets
	hellos                   []time.Duration
	gaps, answers            histogram
	faults                   map[string]int
	frames, events, messages int
	missed                   int
	base, end                measure
}

// histogram counts durations by the millisecond: a night has millions of them.
type histogram struct {
	buckets [10_000]int32
	n       int
}

func (h *histogram) add(d time.Duration) {
	h.buckets[min(max(int(d.Milliseconds()), 0), len(h.buckets)-1)]++
	h.n++
}

// quantile is the value that share q of all do not exceed.
func (h *histogram) quantile(q float64) time.Duration {
	left := int(q * float64(h.n))
	for i, n := range h.buckets {
		if left -= int(n); n > 0 && left <= 0 {
			return time.Duration(i) * time.Millisecond
		}
	}
	return 0
}

// reach says whom a fault touches in passing.
type reach int

const (
	everybody reach = iota // a power cut
	speakers               // whoever waits for a brain or a synthesizer: pauses, but answers
	brains                 // that one of them
	disk                   // whoever writes
)

// trouble is a time in which a fault of that reach goes on.
type trouble struct {
	reach    reach
	from, to time.Time // to is zero while it goes on
}

// trouble begins one, and returns what ends it.
func (s *soak) trouble(r reach) (over func()) {
	t := &trouble{reach: r, from: time.Now()}
	s.mu.Lock()
	s.troubles = append(s.troubles, t)
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.to = time.Now()
	}
}

// troubled reports whether there was one in that time. An engine that was given
// up is waited for no longer than its patience, so its trouble ends that much
// later.
func (s *soak) troubled(from, to time.Time, r reach) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.troubles {
		end := t.to
		if r == speakers {
			end = end.Add(soakPatience)
		}
		if t.reach == r && t.from.Before(to) && (t.to.IsZero() || end.After(from)) {
			return true
		}
	}
	return false
}
