package agent

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"perch/device"
)

// Bounds of the strangers' memories: robots, and entries of each.
const (
	mostStrangers  = 32
	mostOfStranger = 20
)

// Of returns the memory that a turn reads and writes. A stranger has its own,
// which lasts as long as this run at most: it cannot read the owner's memory, and
// adds nothing to it.
func (m *Memory) Of(t Turn) *Memory {
	if !t.Stranger() {
		return m
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	own, known := m.strangers[t.Robot]
	if !known {
		if len(m.strangers) >= mostStrangers {
			delete(m.strangers, slices.MinFunc(slices.Collect(maps.Keys(m.strangers)), func(a, b device.ID) int {
				return m.strangers[a].used.Compare(m.strangers[b].used)
			}))
		}
		own = &stranger{memory: &Memory{kept: &scratch{}, most: mostOfStranger}}
		m.strangers[t.Robot] = own
	}
	own.used = t.Now
	return own.memory
}

// Dismiss drops the memory of a stranger.
func (m *Memory) Dismiss(id device.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.strangers, id)
}

// stranger is the memory of a robot that nobody has adopted.
type stranger struct {
	memory *Memory
	used   time.Time
}

// scratch stores entries for as long as this run.
type scratch struct{ entries sync.Map }

func (s *scratch) Get(key string) (e Entry, there bool, err error) {
	kept, there := s.entries.Load(key)
	e, _ = kept.(Entry)
	return e, there, nil
}

func (s *scratch) PutSoon(key string, e Entry) { s.entries.Store(key, e) }
func (s *scratch) Err() error                  { return nil }

func (s *scratch) Put(key string, e Entry) error {
	s.PutSoon(key, e)
	return nil
}

func (s *scratch) Delete(key string) error {
	s.entries.Delete(key)
	return nil
}

func (s *scratch) All() iter.Seq2[string, Entry] {
	all := map[string]Entry{}
	s.entries.Range(func(key, e any) bool {
		all[key.(string)] = e.(Entry)
		return true
	})
	return func(yield func(string, Entry) bool) {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if !yield(key, all[key]) {
				return
			}
		}
	}
}
