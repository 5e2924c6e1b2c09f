package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// Limits of one read transaction of a walk. During a long transaction bolt cannot grow the file, which blocks every writer
// and then every reader.
const (
	stepRecords = 64      // records
	stepBytes   = 1 << 20 // bytes of keys and values; the last record may exceed this limit
)

// direction is the order of keys in a walk.
type direction int

const (
	ascending  direction = 1
	descending direction = -1
)

// read returns the JSON of the record r, or nil if the record does not exist. It reads the backlog before the file: a
// commit moves values from the backlog to the file, so the other order could miss a value.
func (db *DB) read(r row) (data []byte, err error) {
	db.mu.Lock()
	c, queued := db.pending[r]
	closed := db.closed
	db.mu.Unlock()
	switch {
	case closed:
		return nil, closedError(db.path)
	case queued:
		return c.value, nil
	}
	err = db.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(r.table))
		if b == nil {
			return nil
		}
		data = bytes.Clone(b.Get([]byte(r.key))) // bolt's bytes are invalid after the transaction
		if data == nil {
			return checkAbsent(b.Cursor(), []byte(r.key))
		}
		return nil
	})
	return data, err
}

// checkAbsent returns an error if a key may be missing because the keys of its page were overwritten with zeros, which
// bolt does not notice.
func checkAbsent(c *bbolt.Cursor, key []byte) error {
	next, _ := c.Seek(key)
	var last []byte
	if next == nil {
		last, _ = c.Last()
	} else {
		last, _ = c.Prev()
	}
	for _, k := range [][]byte{last, next} {
		if k != nil && isBlank(k) {
			return fmt.Errorf("%w: a key is lost", errPanic)
		}
	}
	return nil
}

// walk calls yield with a table's records in order, including those in the backlog, until yield returns false. It has no
// transaction open and holds no lock while yield runs. A read error is logged and ends the walk; [Table.Err] reports it.
func (db *DB) walk(table string, d direction, yield func(key string, data []byte) bool) {
	for after, more := "", true; more; {
		queued := db.queuedIn(table, after, d)
		var stored []entry
		err := db.view(func(tx *bbolt.Tx) error {
			stored, more = step(tx, table, after, d)
			return nil
		})
		if err != nil {
			db.log.Error("table cannot be read", "table", table, "err", err)
			return
		}
		if more {
			after = stored[len(stored)-1].key
			queued = slices.DeleteFunc(queued, func(e entry) bool { return d.compare(e.key, after) > 0 })
		}
		for _, e := range merge(stored, queued, d) {
			if e.value != nil && !yield(e.key, e.value) {
				return
			}
		}
	}
}

// compare compares two keys like strings.Compare, in the order of d.
func (d direction) compare(a, b string) int { return int(d) * strings.Compare(a, b) }

// queuedIn returns the backlog's records of a table after a key, or all of them if after is empty.
func (db *DB) queuedIn(table, after string, d direction) []entry {
	db.mu.Lock()
	defer db.mu.Unlock()
	var list []entry
	for r, c := range db.pending {
		if r.table == table && (after == "" || d.compare(r.key, after) > 0) {
			list = append(list, entry{r, c})
		}
	}
	return list
}

// step copies the next records of a table after a key, or its first records if after is empty. It reports whether more
// follow.
func step(tx *bbolt.Tx, table, after string, d direction) (list []entry, more bool) {
	b := tx.Bucket([]byte(table))
	if b == nil {
		return nil, false
	}
	c, size := b.Cursor(), 0
	for k, v := seek(c, after, d); k != nil; k, v = d.next(c) {
		if len(list) == stepRecords || size > stepBytes {
			return list, true
		}
		list = append(list, entry{row{table, string(k)}, &change{bytes.Clone(v)}})
		size += len(k) + len(v)
	}
	return list, false
}

// seek moves the cursor to the first record after a key, which need not exist, or to the first record if after is empty.
func seek(c *bbolt.Cursor, after string, d direction) (k, v []byte) {
	switch {
	case after == "" && d == ascending:
		return c.First()
	case after == "":
		return c.Last()
	}
	k, v = c.Seek([]byte(after))
	switch {
	case d == ascending && string(k) == after:
		return c.Next()
	case d == ascending:
		return k, v
	case k == nil:
		return c.Last()
	}
	return c.Prev()
}

// next moves the cursor to the next record in the order of d.
func (d direction) next(c *bbolt.Cursor) (k, v []byte) {
	if d == ascending {
		return c.Next()
	}
	return c.Prev()
}

// merge returns the sorted records of both lists. A queued record replaces the stored one with the same key.
func merge(stored, queued []entry, d direction) []entry {
	entries := append(queued, stored...)
	slices.SortStableFunc(entries, func(a, b entry) int { return d.compare(a.key, b.key) })
	return slices.CompactFunc(entries, func(a, b entry) bool { return a.key == b.key })
}

// logUndecodable logs a record that cannot be decoded. It logs each record once, and at most a hundred records.
func (db *DB) logUndecodable(r row, err error) {
	db.mu.Lock()
	skip := db.undecodable[r] || len(db.undecodable) >= 100
	if !skip {
		db.undecodable[r] = true
	}
	db.mu.Unlock()
	if !skip {
		db.log.Warn("a record was skipped because it does not fit its type", "table", r.table, "key", r.key, "err", err)
	}
}

// decodeError returns the error for a record that cannot be decoded. A record that is not even JSON is damage.
func (db *DB) decodeError(r row, data []byte, err error) error {
	err = fmt.Errorf("read %s %q: %w", r.table, r.key, err)
	if isRecord([]byte(r.key), data) {
		return err
	}
	return db.recordDamage(damaged(db.path, err))
}

// isRecord reports whether key and value can be a record. The content of an erased or unwritten part of a disk cannot be
// one, for example.
func isRecord(key, value []byte) bool {
	return !isBlank(key) && len(key) <= MaxKey && len(value) <= MaxValue && utf8.Valid(value) && json.Valid(value)
}

// isBlank reports whether key is empty or consists of zeros.
func isBlank(key []byte) bool { return len(bytes.Trim(key, "\x00")) == 0 }

// readable returns an error if the database is closed or damage was found.
func (db *DB) readable() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return closedError(db.path)
	}
	return db.damage
}

// setRefused records and logs cause, the reason why a value of r cannot be stored, unless r has a cause already; Refused
// returns the causes. A nil cause removes the earlier one. setRefused reports whether cause is not nil.
func (db *DB) setRefused(r row, cause error) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	_, logged := db.refused[r]
	switch {
	case cause == nil:
		delete(db.refused, r)
		return false
	case !logged && len(db.refused) < maxRefused:
		db.refused[r] = cause
		db.log.Error("a record was not stored; the earlier one stays", "err", cause)
	}
	return true
}

// maxRefused is the maximum number of refused values whose causes are recorded and logged.
const maxRefused = 100

// Refused returns an error if PutSoon was called with a value that cannot be stored, until the key is written with a valid
// value or deleted.
func (db *DB) Refused() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, cause := range db.refused {
		return fmt.Errorf("%d records could not be stored with their latest values, such as this one: %w", len(db.refused), cause)
	}
	return nil
}
