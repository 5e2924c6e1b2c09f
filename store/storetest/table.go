// Package storetest has a table of the store in memory, for the tests of packages that
// store records, a disk that is soon full, and settings of tests that kill.
package storetest

import (
	"iter"
	"maps"
	"slices"
	"sync"
)

// Table stores its records in the order of their keys. It is safe for concurrent use. The
// zero value is an empty table.
type Table[T any] struct {
	mu     sync.Mutex
	Kept   map[string]T // the records; not to be read while others write
	Last   T            // written last
	Puts   int          // number of writes
	broken error
	full   error
}

// Breaks makes every call fail with err and do nothing, until it is called with nil.
func (t *Table[T]) Breaks(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = err
}

// RefuseDurable makes every durable write fail with err, as the store does on a full disk:
// PutSoon and DeleteSoon still succeed, although nothing reaches the disk. Nil ends it.
func (t *Table[T]) RefuseDurable(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.full = err
}

// durably runs a durable write, unless the table is broken or refuses such writes.
func (t *Table[T]) durably(call func()) error {
	t.mu.Lock()
	full := t.full
	t.mu.Unlock()
	if full != nil {
		return full
	}
	return t.unlessBroken(call)
}

// unlessBroken runs a call, unless the table is broken.
func (t *Table[T]) unlessBroken(call func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == nil {
		call()
	}
	return t.broken
}

func (t *Table[T]) Get(key string) (v T, there bool, err error) {
	err = t.unlessBroken(func() { v, there = t.Kept[key] })
	return v, there, err
}

func (t *Table[T]) Put(key string, v T) error { return t.durably(func() { t.store(key, v) }) }

func (t *Table[T]) store(key string, v T) {
	if t.Kept == nil {
		t.Kept = map[string]T{}
	}
	t.Kept[key], t.Last = v, v
	t.Puts++
}

// Change stores and removes like the store's table. It counts as one Put.
func (t *Table[T]) Change(put map[string]T, remove []string) error {
	return t.durably(func() {
		if t.Kept == nil {
			t.Kept = map[string]T{}
		}
		for _, key := range remove {
			delete(t.Kept, key)
		}
		for key, v := range put {
			t.Kept[key], t.Last = v, v
		}
		t.Puts++
	})
}

func (t *Table[T]) Delete(key string) error { return t.durably(func() { delete(t.Kept, key) }) }
func (t *Table[T]) PutSoon(key string, v T) { _ = t.unlessBroken(func() { t.store(key, v) }) }
func (t *Table[T]) DeleteSoon(key string)   { _ = t.unlessBroken(func() { delete(t.Kept, key) }) }
func (t *Table[T]) Err() error              { return nil }

// All yields the records at the time of the call.
func (t *Table[T]) All() iter.Seq2[string, T] { return t.in(slices.Values[[]string]) }

// Newest yields the last n records, the last first.
func (t *Table[T]) Newest(n int) iter.Seq2[string, T] {
	return t.in(func(keys []string) iter.Seq[string] {
		slices.Reverse(keys)
		return slices.Values(keys[:min(n, len(keys))])
	})
}

func (t *Table[T]) in(order func(keys []string) iter.Seq[string]) iter.Seq2[string, T] {
	var kept map[string]T
	_ = t.unlessBroken(func() { kept = maps.Clone(t.Kept) })
	keys := order(slices.Sorted(maps.Keys(kept)))
	return func(yield func(string, T) bool) {
		for key := range keys {
			if !yield(key, kept[key]) {
				return
			}
		}
	}
}
