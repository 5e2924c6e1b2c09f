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

// Limits of a step of a walk, so that no read transaction lasts: a long one keeps bolt from growing the file, which
// blocks every writer and then every reader.
const (
	stepRecords = 64
	stepBytes   = 1 << 20
)

type direction int

const (
	ascending  direction = 1
	descending direction = -1
)

// read returns the JSON at r, or nil. It checks the backlog before the file: a commit moves values in that direction, so
// the other order could miss one in between.
func (db *DB) read(r row) (data []byte, err error) {
	db.mu.Lock()
	c, waits := db.pending[r]
	closed := db.closed
	db.mu.Unlock()
	switch {
	case closed:
		return nil, closedError(db.path)
	case waits:
		return c.value, nil
	}
	err = db.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(r.table))
		if b == nil {
			return nil
		}
		data = bytes.Clone(b.Get([]byte(r.key))) // bolt's bytes are invalid after the transaction
		if data == nil {
			return absent(b.Cursor(), []byte(r.key))
		}
		return nil
	})
	return data, err
}

// absent returns an error if a key may be missing because its neighbours were wiped. Bolt does not check the part of a
// page of large records that has their keys.
func absent(c *bbolt.Cursor, key []byte) error {
	next, _ := c.Seek(key)
	var last []byte
	if next == nil {
		last, _ = c.Last()
	} else {
		last, _ = c.Prev()
	}
	for _, k := range [][]byte{last, next} {
		if k != nil && wiped(k) {
			return fmt.Errorf("%w: a key is gone", errPanic)
		}
	}
	return nil
}

// walk yields a table's records in order, including the backlog, until yield returns false. No transaction is open and
// no lock is held while yield runs. A read error ends the walk and is logged; [Table.Err] reports it.
func (db *DB) walk(table string, d direction, yield func(key string, data []byte) bool) {
	for after, more := "", true; more; {
		waiting := db.waitingIn(table, after, d)
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
			waiting = slices.DeleteFunc(waiting, func(e entry) bool { return d.order(e.key, after) > 0 })
		}
		for _, e := range merge(stored, waiting, d) {
			if e.value != nil && !yield(e.key, e.value) {
				return
			}
		}
	}
}

func (d direction) order(a, b string) int { return int(d) * strings.Compare(a, b) }

// waitingIn returns the backlog of table beyond the key after; "" is the start in both directions.
func (db *DB) waitingIn(table, after string, d direction) []entry {
	db.mu.Lock()
	defer db.mu.Unlock()
	var list []entry
	for r, c := range db.pending {
		if r.table == table && (after == "" || d.order(r.key, after) > 0) {
			list = append(list, entry{r, c})
		}
	}
	return list
}

// step copies the next records of table beyond the key after, and reports whether more follow.
func step(tx *bbolt.Tx, table, after string, d direction) (list []entry, more bool) {
	b := tx.Bucket([]byte(table))
	if b == nil {
		return nil, false
	}
	c, size := b.Cursor(), 0
	for k, v := start(c, after, d); k != nil; k, v = d.next(c) {
		if len(list) == stepRecords || size > stepBytes {
			return list, true
		}
		list = append(list, entry{row{table, string(k)}, &change{bytes.Clone(v)}})
		size += len(k) + len(v)
	}
	return list, false
}

// start moves the cursor to the first record beyond the key after, which may have been deleted.
func start(c *bbolt.Cursor, after string, d direction) (k, v []byte) {
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

func (d direction) next(c *bbolt.Cursor) (k, v []byte) {
	if d == ascending {
		return c.Next()
	}
	return c.Prev()
}

// merge merges two sorted lists; for a record in both, the waiting one wins.
func merge(stored, waiting []entry, d direction) []entry {
	all := append(waiting, stored...)
	slices.SortStableFunc(all, func(a, b entry) int { return d.order(a.key, b.key) })
	return slices.CompactFunc(all, func(a, b entry) bool { return a.key == b.key })
}

// logUnfit logs a record that does not decode, once per record and at most a hundred.
func (db *DB) logUnfit(r row, err error) {
	db.mu.Lock()
	known := db.loggedUnfit[r] || len(db.loggedUnfit) >= 100
	if !known {
		db.loggedUnfit[r] = true
	}
	db.mu.Unlock()
	if !known {
		db.log.Warn("record skipped, it does not fit its type", "table", r.table, "key", r.key, "err", err)
	}
}

// unfit returns the error of a record that does not decode, which is damage unless it is JSON.
func (db *DB) unfit(r row, data []byte, err error) error {
	err = fmt.Errorf("read %s %q: %w", r.table, r.key, err)
	if sound([]byte(r.key), data) {
		return err
	}
	return db.recordDamage(damaged(db.path, err))
}

// sound reports whether bytes can be a record: text, unlike parts of a card that were wiped or never written.
func sound(key, value []byte) bool {
	return !wiped(key) && len(key) <= MaxKey && len(value) <= MaxValue && utf8.Valid(value) && json.Valid(value)
}

func wiped(key []byte) bool { return len(bytes.Trim(key, "\x00")) == 0 }

// readable returns nil unless something unreadable was found.
func (db *DB) readable() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return closedError(db.path)
	}
	return db.damage
}

// refuse records a value given to PutSoon that cannot be stored, or clears that if why is nil.
func (db *DB) refuse(r row, why error) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	_, known := db.refused[r]
	switch {
	case why == nil:
		delete(db.refused, r)
		return false
	case !known && len(db.refused) < mostRefused:
		db.refused[r] = why
		db.log.Error("a record was not stored; the earlier one stands", "err", why)
	}
	return true
}

// mostRefused bounds the recorded values that were refused, and so the lines in the log.
const mostRefused = 100

// Refused reports values given to PutSoon that cannot be stored, until a value for the same key can.
func (db *DB) Refused() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, why := range db.refused {
		return fmt.Errorf("%d records are not kept as they are now, such as this one: %w", len(db.refused), why)
	}
	return nil
}
