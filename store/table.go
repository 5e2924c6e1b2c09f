package store

import (
	"encoding/json"
	"fmt"
	"iter"
)

// Limits of a record. Callers store larger content in files, which are named by their hash.
const (
	MaxKey   = 1 << 10 // bytes
	MaxValue = 1 << 20 // bytes of JSON
)

// Table is one table of a [DB]. Encoding a T as JSON and decoding it must not lose anything.
type Table[T any] struct {
	db   *DB
	name string
}

// Records is the interface of a [Table]. Package storetest has an implementation in memory for tests.
type Records[T any] interface {
	Get(key string) (v T, found bool, err error)
	Put(key string, v T) error
	Change(put map[string]T, remove []string) error
	PutSoon(key string, v T)
	Delete(key string) error
	DeleteSoon(key string)
	All() iter.Seq2[string, T]
	Newest(n int) iter.Seq2[string, T]
	Err() error
}

// NewTable returns the table with a name. It writes nothing. It panics if the name is empty, "schema", or longer than
// [MaxKey] bytes.
func NewTable[T any](db *DB, name string) *Table[T] {
	if name == "" || name == schemaTable || len(name) > MaxKey {
		panic(fmt.Sprintf("store: %q is not a name for a table", name))
	}
	return &Table[T]{db, name}
}

// Get returns the value of a key and whether it exists. If the value cannot be decoded as a T, Get returns an error.
func (t *Table[T]) Get(key string) (v T, found bool, err error) {
	data, err := t.db.read(row{t.name, key})
	if err != nil || data == nil {
		return v, false, err
	}
	if err := json.Unmarshal(data, &v); err != nil {
		var zero T // Unmarshal may have filled part of v
		return zero, false, t.db.decodeError(row{t.name, key}, data, err)
	}
	return v, true, nil
}

// Put stores a value. When it returns nil, the value is on the disk, together with all changes that were queued. If the
// value and all queued changes are stored already, Put commits nothing. After an error the earlier value is still valid.
func (t *Table[T]) Put(key string, v T) error {
	c, err := t.encode(key, v)
	if err != nil {
		return err
	}
	t.db.setRefused(row{t.name, key}, nil)
	return t.db.writeNow(entry{row{t.name, key}, c})
}

// Change stores several values and removes others in one commit, durably like [Table.Put]. After an error all earlier
// values are still valid. A key must not be in both arguments.
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
		t.db.setRefused(e.row, nil)
	}
	return t.db.writeNow(batch...)
}

// PutSoon queues a value, which reaches the disk later (see the package's documentation). Reads see it at once. PutSoon
// encodes v before it returns, so the caller may change v afterwards. If a key is written several times, only the latest
// value is committed. A value that cannot be stored is logged and reported by [DB.Refused], and the earlier value stays;
// callers limit the size of their values.
//
// If [MaxWaiting] records or [MaxWaitingBytes] bytes are queued, PutSoon waits for a commit. If this commit or the last one
// has failed, PutSoon drops the value. The first dropped value is logged. Memory is limited, and a full disk must not stop
// the robots.
func (t *Table[T]) PutSoon(key string, v T) {
	c, err := t.encode(key, v)
	if t.db.setRefused(row{t.name, key}, err) {
		return
	}
	t.db.writeSoon(row{t.name, key}, c)
}

// Delete removes the value of a key, if there is one, durably like [Table.Put].
func (t *Table[T]) Delete(key string) error {
	t.db.setRefused(row{t.name, key}, nil)
	return t.db.writeNow(entry{row{t.name, key}, &change{}})
}

// DeleteSoon queues the removal of a value, like [Table.PutSoon].
func (t *Table[T]) DeleteSoon(key string) {
	t.db.setRefused(row{t.name, key}, nil)
	t.db.writeSoon(row{t.name, key}, &change{})
}

// All yields all records, including queued ones, in ascending byte order of their keys. It reads in small steps, so it may
// or may not yield a record that is written during the loop; it yields every other record once. A record that cannot be
// decoded as a T is logged and skipped, but not deleted. The loop ends early if the file cannot be read. Callers that act
// on missing records must therefore check [Table.Err] after the loop.
func (t *Table[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) { t.each(ascending, yield) }
}

// Newest yields the n records with the greatest keys, in descending order, like [Table.All].
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

// Err returns an error if damage was found or the database is closed. Then a loop over a table may have ended early, and
// all writes fail.
func (t *Table[T]) Err() error { return t.db.readable() }

// each calls yield with every record that can be decoded, until yield returns false.
func (t *Table[T]) each(d direction, yield func(string, T) bool) {
	t.db.walk(t.name, d, func(key string, data []byte) bool {
		var v T
		if err := json.Unmarshal(data, &v); err != nil {
			t.db.logUndecodable(row{t.name, key}, t.db.decodeError(row{t.name, key}, data, err))
			return true
		}
		return yield(key, v)
	})
}

// encode encodes a value. It returns an error that wraps ErrRefused if the record cannot be stored.
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
