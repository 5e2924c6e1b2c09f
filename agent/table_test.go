package agent_test

import (
	"iter"
	"maps"
	"sync"
)

// table is a table of the store, in memory. It may be used from any goroutine.
type table[T any] struct {
	mu   sync.Mutex
	kept map[string]T
	err  error // of Delete
}

func newTable[T any]() *table[T] { return &table[T]{kept: map[string]T{}} }

func (t *table[T]) Get(key string) (T, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, there := t.kept[key]
	return v, there, nil
}

func (t *table[T]) Put(key string, v T) error { t.PutSoon(key, v); return nil }

func (t *table[T]) PutSoon(key string, v T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept[key] = v
}

func (t *table[T]) Delete(key string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		delete(t.kept, key)
	}
	return t.err
}

func (t *table[T]) DeleteSoon(key string) { _ = t.Delete(key) }

func (t *table[T]) Err() error { return nil }

func (t *table[T]) All() iter.Seq2[string, T] {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.All(maps.Clone(t.kept))
}
