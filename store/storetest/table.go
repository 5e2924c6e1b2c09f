// Package storetest helps to test packages that store records: it has a table in memory, a small
// disk, and a function that reads the settings of tests from the environment.
package storetest

import (
	"iter"
	"maps"
	"slices"
	"sync"
)

// Table is a table in memory with the methods of store.Table. It is safe for concurrent use. The
// zero value is an empty table.
type Table[T any] struct {
	mu     sync.Mutex
	Kept   map[string]T // the records; must not be read while other goroutines write
	Last   T            // the value that was written last
	Puts   int          // number of calls of Put, PutSoon and Change
	broken error        // set by Breaks; may be nil
	full   error        // set by RefuseDurable; may be nil
}

// Breaks makes reads return nothing and writes do nothing; methods other than Err that return an
// error return err. Breaks(nil) ends this.
func (t *Table[T]) Breaks(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = err
}

// RefuseDurable makes Put, Change and Delete fail with err, as the store does on a full disk.
// PutSoon and DeleteSoon still succeed. RefuseDurable(nil) ends this.
func (t *Table[T]) RefuseDurable(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.full = err
}

// writeDurably calls write, unless Breaks or RefuseDurable has set an error, which it returns.
func (t *Table[T]) writeDurably(write func()) error {
	t.mu.Lock()
	full := t.full
	t.mu.Unlock()
	if full != nil {
		return full
	}
	return t.unlessBroken(write)
}

// unlessBroken runs call, unless Breaks has set an error, which it returns.
func (t *Table[T]) unlessBroken(call func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == nil {
		call()
	}
	return t.broken
}

// Get implements store.Table.
func (t *Table[T]) Get(key string) (v T, found bool, err error) {
	err = t.unlessBroken(func() { v, found = t.Kept[key] })
	return v, found, err
}

// Put implements store.Table.
func (t *Table[T]) Put(key string, v T) error { return t.writeDurably(func() { t.store(key, v) }) }

// store stores a value, and counts it. t.mu must be held.
func (t *Table[T]) store(key string, v T) {
	if t.Kept == nil {
		t.Kept = map[string]T{}
	}
	t.Kept[key], t.Last = v, v
	t.Puts++
}

// Change implements store.Table.
func (t *Table[T]) Change(put map[string]T, remove []string) error {
	return t.writeDurably(func() {
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

// Delete implements store.Table.
func (t *Table[T]) Delete(key string) error {
	return t.writeDurably(func() { delete(t.Kept, key) })
}

// PutSoon implements store.Table.
func (t *Table[T]) PutSoon(key string, v T) { _ = t.unlessBroken(func() { t.store(key, v) }) }

// DeleteSoon implements store.Table.
func (t *Table[T]) DeleteSoon(key string) { _ = t.unlessBroken(func() { delete(t.Kept, key) }) }

// Err returns nil.
func (t *Table[T]) Err() error { return nil }

// All yields the records at the time of the call, in the order of their keys.
func (t *Table[T]) All() iter.Seq2[string, T] { return t.yield(slices.Values[[]string]) }

// Newest yields the n records with the greatest keys, in descending order.
func (t *Table[T]) Newest(n int) iter.Seq2[string, T] {
	return t.yield(func(keys []string) iter.Seq[string] {
		slices.Reverse(keys)
		return slices.Values(keys[:min(n, len(keys))])
	})
}

// yield returns an iterator over the records of the keys that order returns. The argument of order is
// all keys, sorted.
func (t *Table[T]) yield(order func(keys []string) iter.Seq[string]) iter.Seq2[string, T] {
	var records map[string]T
	_ = t.unlessBroken(func() { records = maps.Clone(t.Kept) })
	keys := order(slices.Sorted(maps.Keys(records)))
	return func(yield func(string, T) bool) {
		for key := range keys {
			if !yield(key, records[key]) {
				return
			}
		}
	}
}
