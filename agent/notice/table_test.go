package notice_test

import (
	"iter"
	"maps"
	"sync"
)

// table is a table of the store, in memory, that can fail. It may be used from any
// goroutine.
type table[T any] struct {
	mu     sync.Mutex
	kept   map[string]T
	broken error
	puts   int
}

func newTable[T any]() *table[T] { return &table[T]{kept: map[string]T{}} }

// change makes a change, unless the table is broken.
func (t *table[T]) change(do func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == nil {
		do()
	}
	return t.broken
}

func (t *table[T]) Get(key string) (v T, there bool, err error) {
	err = t.change(func() { v, there = t.kept[key] })
	return v, there, err
}

func (t *table[T]) Put(key string, v T) error {
	return t.change(func() { t.kept[key] = v; t.puts++ })
}

func (t *table[T]) Delete(key string) error { return t.change(func() { delete(t.kept, key) }) }
func (t *table[T]) PutSoon(key string, v T) { _ = t.Put(key, v) }
func (t *table[T]) DeleteSoon(key string)   { _ = t.Delete(key) }

func (t *table[T]) All() iter.Seq2[string, T] {
	all := map[string]T{}
	_ = t.change(func() { maps.Copy(all, t.kept) })
	return maps.All(all)
}

func (t *table[T]) breaks(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = err
}

func (t *table[T]) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.kept)
}
