package e2e

import (
	"time"
)

// figures are the results of a run.
type figures struct {
	talks, turns, understood int // conversations that no fault has touched, their turns, and turns recognized word by word
	touched                  int // conversations that a fault has touched
	early                    int // packets that arrived before the robot was in its speaking state
	late                     int // conversations during a stall of the machine
	excused                  int // times that a speaker ran out of sound during a fault or stall
	sent, received           int // packets of the robots
	hellos                   []time.Duration
	gaps, answers            histogram
	faults                   map[string]int
	frames, events, messages int
	missed                   int
	base, end                measure
}

// histogram counts durations in buckets of one millisecond; the last holds all from 9.999 s. A run of eight hours has
// millions of durations, too many to store.
type histogram struct {
	buckets [10_000]int32
	n       int
}

func (h *histogram) add(d time.Duration) {
	h.buckets[min(max(int(d.Milliseconds()), 0), len(h.buckets)-1)]++
	h.n++
}

// quantile returns the duration, rounded down to a millisecond, that a share q (0 to 1) of all do not exceed.
func (h *histogram) quantile(q float64) time.Duration {
	left := int(q * float64(h.n))
	for i, n := range h.buckets {
		if left -= int(n); n > 0 && left <= 0 {
			return time.Duration(i) * time.Millisecond
		}
	}
	return 0
}

// reach says what a fault affects while it lasts.
type reach int

const (
	everybody reach = iota // every client, as a power cut does
	speakers               // answers that need a language model or a synthesizer: they may have pauses
	brains                 // answers that need a language model, which may call no tool
	disk                   // writes, which may fail
)

// trouble is the period of a fault with some reach.
type trouble struct {
	reach    reach
	from, to time.Time // to is zero if the fault is not over
}

// trouble records the begin of a fault, and returns a function that records its end.
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

// troubled reports whether a fault with reach r overlapped the period between from and to. Faults of speakers count for
// soakPatience longer, because a request sent during the fault may wait that long before the next engine is asked.
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
