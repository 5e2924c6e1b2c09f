// Package storetest is a table of the store in memory, for the tests of packages
// that keep records, a disk that is soon full, and settings of tests that kill.
package storetest

import (
	"iter"
	"maps"
	"slices"
	"sync"
)

// Table keeps its records in the order of their keys. Its methods may be called
// from any goroutine. The zero value is an empty table.
type Table[T any] struct {
	mu     sync.Mutex
	Kept   map[string]T // a test that reads it while others write races
	Last   T            // the record written last
	Puts   int          // how many were written
	broken error
	full   error
}

// Breaks has every call fail with an error and do nothing. Without one the table
// works again.
func (t *Table[T]) Breaks(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = err
}

// RefuseDurable has every durable write fail with an error, as the store does on a full
// disk: PutSoon and DeleteSoon still work, and nobody learns that they reach no disk.
// Without an error all works again.
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
	return t.do(call)
}

// do runs a call, unless the table is broken.
func (t *Table[T]) do(call func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == nil {
		call()
	}
	return t.broken
}

func (t *Table[T]) Get(key string) (v T, there bool, err error) {
	err = t.do(func() { v, there = t.Kept[key] })
	return v, there, err
}

func (t *Table[T]) Put(key string, v T) error { return t.durably(func() { t.put(key, v) }) }

func (t *Table[T]) put(key string, v T) {
	if t.Kept == nil {
		t.Kept = map[string]T{}
	}
	t.Kept[key], t.Last = v, v
	t.Puts++
}

// Change puts and removes as the table of the store does. It counts as one Put.
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
func (t *Table[T]) PutSoon(key string, v T) { _ = t.do(func() { t.put(key, v) }) }
func (t *Table[T]) DeleteSoon(key string)   { _ = t.do(func() { delete(t.Kept, key) }) }
func (t *Table[T]) Err() error              { return nil }

// All are the records at the time of the call.
func (t *Table[T]) All() iter.Seq2[string, T] { return t.in(slices.Values[[]string]) }

// Newest are the last n of them, the last first.
func (t *Table[T]) Newest(n int) iter.Seq2[string, T] {
	return t.in(func(keys []string) iter.Seq[string] {
		slices.Reverse(keys)
		return slices.Values(keys[:min(n, len(keys))])
	})
}

func (t *Table[T]) in(order func(keys []string) iter.Seq[string]) iter.Seq2[string, T] {
	var kept map[string]T
	_ = t.do(func() { kept = maps.Clone(t.Kept) })
	keys := order(slices.Sorted(maps.Keys(kept)))
	return func(yield func(string, T) bool) {
		for key := range keys {
			if !yield(key, kept[key]) {
				return
			}
		}
	}
}
