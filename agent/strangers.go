package agent

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"perch/device"
)

// What strangers may have remembered: so many robots, each so many things.
const (
	mostStrangers  = 32
	mostOfStranger = 20
)

// Of returns the memory that a turn reads and writes. That of a stranger's robot
// is its own, and lasts as long as this run at most: it sees nothing of what the
// house remembers, and leaves nothing in it.
func (m *Memory) Of(t Turn) *Memory {
	if !t.Stranger() {
		return m
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	own, known := m.strangers[t.Robot]
	if !known {
		if len(m.strangers) >= mostStrangers {
			delete(m.strangers, m.idlest())
		}
		own = &stranger{memory: &Memory{kept: &scratch{entries: map[string]Entry{}}, most: mostOfStranger}}
		m.strangers[t.Robot] = own
	}
	own.used = t.Now
	return own.memory
}

// Dismiss drops what a stranger's robot had remembered.
func (m *Memory) Dismiss(id device.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.strangers, id)
}

// idlest is the stranger who was not here for longest. m.mu is held.
func (m *Memory) idlest() (id device.ID) {
	for other, s := range m.strangers {
		if id == "" || s.used.Before(m.strangers[id].used) {
			id = other
		}
	}
	return id
}

// stranger is the memory of one that nobody has adopted.
type stranger struct {
	memory *Memory
	used   time.Time
}

// scratch keeps entries as long as this run.
type scratch struct {
	mu      sync.Mutex
	entries map[string]Entry
}

func (s *scratch) Get(key string) (Entry, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, there := s.entries[key]
	return e, there, nil
}

func (s *scratch) Put(key string, e Entry) error {
	s.PutSoon(key, e)
	return nil
}

func (s *scratch) PutSoon(key string, e Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[key] = e
}

func (s *scratch) Delete(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, key)
	return nil
}

func (s *scratch) Err() error { return nil }

func (s *scratch) All() iter.Seq2[string, Entry] {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.entries)
	return func(yield func(string, Entry) bool) {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if !yield(key, all[key]) {
				return
			}
		}
	}
}
