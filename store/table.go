package store

import (
	"encoding/json"
	"fmt"
	"iter"
)

// Limits of a record. Larger content is a file, named by its hash.
const (
	MaxKey   = 1 << 10 // bytes
	MaxValue = 1 << 20 // bytes of JSON
)

// Table is a typed view of one table of a [DB]. T must survive a round trip through encoding/json.
type Table[T any] struct {
	db   *DB
	name string
}

// NewTable returns the table of that name; it writes nothing. An empty name, "schema" or one over [MaxKey] bytes is a
// programmer's error and panics.
func NewTable[T any](db *DB, name string) *Table[T] {
	if name == "" || name == schemaTable || len(name) > MaxKey {
		panic(fmt.Sprintf("store: %q is not a name for a table", name))
	}
	return &Table[T]{db, name}
}

// Get returns the value at key and whether it exists. A record that does not decode as a T is an error.
func (t *Table[T]) Get(key string) (v T, found bool, err error) {
	data, err := t.db.read(row{t.name, key})
	if err != nil || data == nil {
		return v, false, err
	}
	if err := json.Unmarshal(data, &v); err != nil {
		var zero T // Unmarshal may have filled part of v
		return zero, false, t.db.unfit(row{t.name, key}, data, err)
	}
	return v, true, nil
}

// Put stores v at key. When it returns nil, v is on the disk, with all that PutSoon had queued: one commit, or none if
// all of it was stored already. After an error the earlier value is still valid.
func (t *Table[T]) Put(key string, v T) error {
	c, err := t.encode(key, v)
	if err != nil {
		return err
	}
	t.db.refuse(row{t.name, key}, nil)
	return t.db.writeNow(entry{row{t.name, key}, c})
}

// Change stores several values and removes others durably in one commit, as [Table.Put] writes: after an error all
// earlier values are still valid. A key must not be in both arguments.
func (t *Table[T]) Change(put map[string]T, remove []string) error {
	batch := make([]entry, 0, len(put)+len(remove))
	for key, v := range put {
		c, err := t.encode(key, v)
		if err != nil {
			return err
		}
		batch = append(batch, entry{row{t.name, key}, c})
	}
	for _, key := range remove {
		batch = append(batch, entry{row{t.name, key}, &change{}})
	}
	for _, e := range batch {
		t.db.refuse(e.row, nil)
	}
	return t.db.writeNow(batch...)
}

// PutSoon stores v at key in memory now and on the disk soon (see the package). v is encoded before PutSoon returns, so it
// may be changed afterwards. Of several values for one key only the latest is written. A value that cannot be stored is
// logged and reported by [DB.Refused], and the earlier one stays: the caller bounds its values.
//
// With [MaxWaiting] records or [MaxWaitingBytes] queued, PutSoon itself waits for a commit. If that fails, values for
// further keys are dropped, which is logged once: memory is limited, and the robot must go on talking.
func (t *Table[T]) PutSoon(key string, v T) {
	c, err := t.encode(key, v)
	if t.db.refuse(row{t.name, key}, err) {
		return
	}
	t.db.writeSoon(row{t.name, key}, c)
}

// Delete removes the value at key, if any, durably, as [Table.Put] writes.
func (t *Table[T]) Delete(key string) error {
	t.db.refuse(row{t.name, key}, nil)
	return t.db.writeNow(entry{row{t.name, key}, &change{}})
}

// DeleteSoon removes the value at key as [Table.PutSoon] writes.
func (t *Table[T]) DeleteSoon(key string) {
	t.db.refuse(row{t.name, key}, nil)
	t.db.writeSoon(row{t.name, key}, &change{})
}

// All yields the records in ascending byte order of their keys, queued ones included. It reads in small steps: a record
// that is written during the loop may or may not be seen, the others are seen once. A record that does not decode as a T
// is logged and skipped, but not deleted. [Table.Err] reports whether a loop ended early because something could not be
// read. A caller that acts on missing records checks it first.
func (t *Table[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) { t.each(ascending, yield) }
}

// Newest yields the last n records by key, the greatest key first, as [Table.All] does.
func (t *Table[T]) Newest(n int) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		left := n
		if left <= 0 {
			return
		}
		t.each(descending, func(key string, v T) bool {
			left--
			return yield(key, v) && left > 0
		})
	}
}

// Err returns nil unless something unreadable was found. After that a loop over a table may have ended early, and nothing
// is written any more.
func (t *Table[T]) Err() error { return t.db.readable() }

func (t *Table[T]) each(d direction, yield func(string, T) bool) {
	t.db.walk(t.name, d, func(key string, data []byte) bool {
		var v T
		if err := json.Unmarshal(data, &v); err != nil {
			t.db.logUnfit(row{t.name, key}, t.db.unfit(row{t.name, key}, data, err))
			return true
		}
		return yield(key, v)
	})
}

func (t *Table[T]) encode(key string, v T) (*change, error) {
	if key == "" || len(key) > MaxKey {
		return nil, fmt.Errorf("%w: %s: a key has 1 to %d bytes, this one %d", ErrRefused, t.name, MaxKey, len(key))
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: %s %q: %w", ErrRefused, t.name, key, err)
	}
	if len(data) > MaxValue {
		return nil, fmt.Errorf("%w: %s %q has %d bytes, over %d", ErrRefused, t.name, key, len(data), MaxValue)
	}
	return &change{data}, nil
}
