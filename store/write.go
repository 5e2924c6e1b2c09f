package store

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"go.etcd.io/bbolt"
)

// Limits of the changes that are queued in memory.
const (
	MaxWaiting      = 10_000  // records
	MaxWaitingBytes = 8 << 20 // bytes of keys and values, and of the name of the table with each
)

// row identifies one record.
type row struct{ table, key string }

// change is the new value of a record; a nil value deletes the record. A change is immutable: a commit compares pointers
// to find out whether the record was written again in the meantime.
type change struct{ value []byte }

// entry is a record and its change.
type entry struct {
	row
	*change
}

// size returns the number of bytes of the names and the value.
func (e entry) size() int { return len(e.table) + len(e.key) + len(e.value) }

// writeNow commits entries, together with the backlog.
func (db *DB) writeNow(entries ...entry) error {
	db.mu.Lock()
	closed := db.closed
	db.mu.Unlock()
	if closed {
		return closedError(db.path)
	}
	// Only a removal can have an empty key, and no record has that key.
	return db.commit(slices.DeleteFunc(entries, func(e entry) bool { return e.key == "" })...)
}

// writeSoon queues a change. If the backlog is full, writeSoon commits the backlog first, unless the last commit failed. If
// the backlog is still full then, writeSoon drops the change.
func (db *DB) writeSoon(r row, c *change) {
	e := entry{r, c}
	if r.key == "" || db.queue(e, false) {
		return
	}
	if db.Err() == nil { // after an error only the flusher tries again
		_ = db.commit()
	}
	db.queue(e, true)
}

// queue adds e to the backlog and returns true; the first entry wakes the flusher. If the backlog is full, queue returns
// false or, if mayDrop is set, drops e and returns true; it logs the first entry dropped since the last successful commit.
// After Close queue drops e, logs that, and returns true.
func (db *DB) queue(e entry, mayDrop bool) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		db.log.Error("record not stored", "table", e.table, "key", e.key, "err", ErrClosed)
		return true
	}
	old, queued := db.pending[e.row]
	size := db.size + e.size()
	if queued {
		size -= entry{e.row, old}.size()
	} else if len(db.pending) >= MaxWaiting {
		size = MaxWaitingBytes + 1
	}
	if size > MaxWaitingBytes {
		if mayDrop {
			if db.lost++; db.lost == 1 {
				db.log.Error("records are dropped because too many are queued while the disk cannot be written", "waiting", len(db.pending), "err", db.err)
			}
		}
		return mayDrop
	}
	if len(db.pending) == 0 {
		db.wakeFlusher()
	}
	db.pending[e.row], db.size = e.change, size
	return true
}

// wakeFlusher makes flushLoop start its timer.
func (db *DB) wakeFlusher() {
	select {
	case db.wake <- struct{}{}:
	default:
	}
}

// commit writes the backlog and then the entries in one transaction. After an error the backlog stays.
func (db *DB) commit(entries ...entry) error {
	db.writing.Lock()
	defer db.writing.Unlock()
	queued := db.queued()
	batch := slices.Concat(queued, entries)
	if len(batch) == 0 {
		return nil
	}
	// Sorted, because neighbouring records share pages. Stable, so that the newer of two changes of one record comes last.
	slices.SortStableFunc(batch, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.key, b.key))
	})
	err := db.update(func(tx *bbolt.Tx) error { return apply(tx, batch) })
	db.finishCommit(queued, err)
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// queued returns the backlog.
func (db *DB) queued() []entry {
	db.mu.Lock()
	defer db.mu.Unlock()
	list := make([]entry, 0, len(db.pending))
	for r, c := range db.pending {
		list = append(list, entry{r, c})
	}
	return list
}

// errUnchanged rolls back a transaction that would change nothing, because a commit takes two syncs.
var errUnchanged = errors.New("nothing changed")

// apply writes the entries that differ from the stored records. It returns errUnchanged if all are equal.
func apply(tx *bbolt.Tx, batch []entry) error {
	changed := false
	for _, e := range batch {
		b := tx.Bucket([]byte(e.table))
		if b == nil && e.value == nil {
			continue
		}
		if b == nil {
			var err error
			if b, err = tx.CreateBucket([]byte(e.table)); err != nil {
				return err
			}
		}
		stored := b.Get([]byte(e.key))
		if (stored == nil) == (e.value == nil) && bytes.Equal(stored, e.value) {
			continue
		}
		changed = true
		if err := putEntry(b, e); err != nil {
			return err
		}
	}
	if !changed {
		return errUnchanged
	}
	return nil
}

// putEntry stores or deletes a record.
func putEntry(b *bbolt.Bucket, e entry) error {
	if e.value == nil {
		return b.Delete([]byte(e.key))
	}
	return b.Put([]byte(e.key), e.value)
}

// finishCommit stores the result of a commit. After a success it removes the written entries from the backlog, except those
// that were written again in the meantime.
func (db *DB) finishCommit(written []entry, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if !errors.Is(err, errUnchanged) { // otherwise nothing was written
		db.err = err
		if err != nil {
			return
		}
		db.lost = 0
	}
	for _, e := range written {
		if db.pending[e.row] == e.change {
			delete(db.pending, e.row)
			db.size -= e.size()
		}
	}
	if len(db.pending) > 0 {
		db.wakeFlusher()
	}
}
